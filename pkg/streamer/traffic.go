package streamer

import (
	"sync"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// Dir is the direction a frame travels.
type Dir uint8

// The directions, seen from this end.
const (
	Sent Dir = iota + 1
	Received
)

// String is "sent" or "received".
func (d Dir) String() string {
	if d == Sent {
		return "sent"
	}
	return "received"
}

// Event is a frame that was cut for sending, or taken from the peer. At is the offset of its
// first byte in its direction, Octets its length on the wire. Lane, Exchange and Reply are those
// of data and cancel frames; the rest is of data frames: Payload is the bytes of payload in it,
// Message those of its message up to here, so with Last of the whole message (0 for what was
// refused).
type Event struct {
	Dir            Dir
	Kind           FrameKind
	At             int64
	Octets         int
	Lane, Exchange uint64
	Reply          bool
	First, Last    bool
	OneWay         bool
	Payload        int
	Message        int64
}

// Count is a number of frames and their bytes on the wire.
type Count struct{ Frames, Octets int64 }

func (c *Count) add(octets int) {
	c.Frames++
	c.Octets += int64(octets)
}

// Traffic is what one direction has carried. Other counts idle and skipped frames. Messages are
// whole ones.
type Traffic struct {
	Hello, Shape, Data, Sync, Ack, Cancel, Close, Other Count
	Messages                                            int64
}

// Octets is the sum over all frames.
func (t Traffic) Octets() int64 {
	var n int64
	for _, c := range []Count{t.Hello, t.Shape, t.Data, t.Sync, t.Ack, t.Cancel, t.Close, t.Other} {
		n += c.Octets
	}
	return n
}

// Stats is what a stream has carried so far. CreditWaits is how often a message of this end waited
// for the peer to take more of it.
type Stats struct {
	Sent, Received Traffic
	CreditWaits    int64
}

func (t *Traffic) of(k FrameKind) *Count {
	switch k {
	case frame.KindHello:
		return &t.Hello
	case frame.KindShape:
		return &t.Shape
	case frame.KindData:
		return &t.Data
	case frame.KindSync:
		return &t.Sync
	case frame.KindAck:
		return &t.Ack
	case frame.KindCancel:
		return &t.Cancel
	case frame.KindClose:
		return &t.Close
	default:
		return &t.Other
	}
}

// trafficCounter counts what a stream carries.
type trafficCounter struct {
	mu             sync.Mutex
	sent, received Traffic
}

// wrote counts frames that are about to be written, with which so many messages ended.
func (c *trafficCounter) wrote(frames []wire.Written, messages int32) {
	if len(frames) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		c.sent.of(frames[i].Kind).add(frames[i].Octets)
	}
	c.sent.Messages += int64(messages)
}

// read counts a frame that came; last: with the end of a message.
func (c *trafficCounter) read(kind FrameKind, octets int, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.of(kind).add(octets)
	if last {
		c.received.Messages++
	}
}
