package streamer

import "io"

// Coder is the codec of one stream: it knows shapes, of which a stream knows the numbers. Package codec/binary implements it.
// The stream never calls two methods of one group at once; the groups run concurrently.
type Coder interface {
	// Split is called in the goroutines that send, several at once. It cuts a message into segments of at most max octets and hands each to emit, in order, those of the head
	// first; a head of no octets is none. shape is the shape number of the part, the same for all its segments; text tells of a segment of section 10.6 (keep included in the
	// first), which is never the first segment of a part, nor in a head. data is valid during the call only. A body always has at least one segment, maybe empty.
	// An error of emit ends Split, which returns it.
	Split(lane uint64, head []byte, body io.Reader, max int, emit func(inHead bool, shape uint64, text bool, data []byte) error) error

	// The sending table: called by the writer only.

	// Announce tells what must be written before number is used: full nil and ok: a reference by fp; full not nil: octets that tell the shape in full;
	// not ok: nothing, the number is good.
	Announce(number uint64) (fp [32]byte, full []byte, ok bool)
	// Epoch ends all announcements but those it yields (section 6, "shapes"), ascending, at most 1024. open counts the messages that use a number,
	// from emit on until they are whole or given up, and its shape while that is on its way in full; these numbers must be yielded if they are announced, and must not be given to other shapes.
	Epoch(open map[uint64]int, yield func(number uint64, fp [32]byte))
	// Price estimates how many octets it takes to say again what the next Epoch ends, and to list what it does not end.
	Price() int64
	// Lacks tells that the other end lacks the shape of number; it returns octets that tell it in full. A coder keeps for that a number announced by
	// reference, unless it knows for sure that the other end has the shape; of a number given up since it tells any other shape, so that the other end stops waiting.
	Lacks(number uint64) (full []byte, err error)

	// The receiving table: called by the reader only.

	// Refer says that number stands for the shape fp from now on. known false: this end lacks it; the stream asks for it and holds what uses it.
	Refer(number uint64, fp [32]byte) (known bool, err error)
	// Define says that number stands for this shape from now on; fp is its fingerprint. The shape is stored before Define returns. full is the callee's.
	Define(number uint64, full []byte) (fp [32]byte, err error)
	// Known tells whether number was announced, and whether its shape is there.
	Known(number uint64) (known, announced bool)
	// Forget says that number, which was announced, stands for nothing any more, and takes no room.
	Forget(number uint64)
	// NewJoin begins a part of an incoming message; number 0 is text. The reader calls it when the part begins; the function it returns is called later, by the goroutine that
	// reads the message. That joins segment by segment: it appends to dst what is determined so far. last: no further segment.
	NewJoin(number uint64) (func(dst, segment []byte, text, last bool) ([]byte, error), error)
}
