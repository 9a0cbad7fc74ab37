package streamer

import (
	"fmt"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// Limits are what this end takes from the other; its hello states them (docs/wire-format.md,
// section 3). A zero field means its default.
type Limits struct {
	// MaxFragment is the longest payload of one data frame, in bytes, 512 to 16384; default 16384:
	// long enough that framing costs nothing.
	MaxFragment int
	// MaxMessage is the longest joined message, head and body, in bytes; default 1 GiB: a bound on
	// work, as no message is held as a whole.
	MaxMessage int64
	// MaxShapes is how many shape numbers of the peer are kept; default 1024: some ten
	// services of a hundred operations. Less than 16, or less than 64 KiB of MaxShapeBytes, binds a
	// sender from when it has read the hello; that much is taken until then.
	MaxShapes int
	// MaxShapeBytes is the sum of their serializations, in bytes; default 4 MiB: 4 KiB a shape.
	MaxShapeBytes int64
	// MaxExchanges is how many exchanges begun by the peer are in flight, and how many
	// handlers run, at once; default 256.
	MaxExchanges int
	// Window is how much content of a message the peer may send ahead of who reads it here, in
	// bytes, 32 KiB at least; default 256 KiB: what a link of 40 Mbit/s carries in 50 ms. Credit
	// for more is given as it is read, so that a body that nobody reads stops its own exchange and
	// no other.
	Window int64
	// MaxQueued is how much content of one-way messages waits for the application, in bytes;
	// default 64 MiB. Further ones are refused as busy. It is not stated.
	MaxQueued int64
	// MaxHeld is how much payload waits for a shape, in bytes; default 1 MiB: a round trip on a
	// fast link.
	MaxHeld int64
}

const (
	// defaultQueueBytes is enough to keep a fast link busy, and little enough to forget.
	defaultQueueBytes = 1 << 20
	// defaultHelloTimeout is several round trips of the slowest link.
	defaultHelloTimeout = 30 * time.Second
	// maxHead bounds the joined head of a message, in bytes: unlike a body it is handed over as a
	// whole.
	maxHead = 1 << 20
	// batchOctets is when the writer stops collecting frames and writes: about one fragment, so
	// that a late small message waits for no more.
	batchOctets = frame.MaxPayload
	// batchContent is when it writes whatever the content of the messages comes to.
	batchContent = 4 * batchOctets
	// maxRefusals bounds the refusals of one-way messages that are kept for who asks.
	maxRefusals = 4096
	// maxFlight bounds the exchanges this end has in flight, whatever the peer would take.
	maxFlight = 4096
	// controlSlack is how many cancels may wait beside those that the peer's permitted
	// exchanges can cause.
	controlSlack = 1024
	// inlineBody is the longest body in memory, in bytes, that is sent in the goroutine of Call, if
	// it is within half a window; longer ones have their own, so that a reply may begin before the
	// request is through.
	inlineBody = 64 << 10
	// maxParked bounds the goroutines of all streams that wait for something to serve: with their
	// stacks they have a megabyte.
	maxParked = 128
	// exchangeWeight is what a message that waits for a handler costs beside its content, in bytes.
	exchangeWeight = 768
	// closeLinger is how long Close, or the close of the peer, waits for what is under way;
	// failLinger how long a broken stream tries to tell the peer why.
	closeLinger = 5 * time.Second
	failLinger  = time.Second
	// memoryQuiet is how long a lane is silent before its memory is made small at this end, and how
	// long a stream is before it gives back what it does not need to wait.
	memoryQuiet = time.Second
	// youngQuiet is that of a direction which has carried less than youngOctets: so little is made
	// small, and brought back, at no cost worth mentioning, and of many streams that are opened and
	// left idle fewer take more than they need to wait.
	youngQuiet  = 100 * time.Millisecond
	youngOctets = 8 << 10
	// memoryIdle is how long a lane is silent before a memory that is large all the same is given
	// back, at both ends; memoryRest is how much earlier, so that lanes do it together.
	memoryIdle = 30 * time.Second
	memoryRest = time.Second
	// drainOctets bounds what a broken stream still reads, so that a close frame is not lost to a
	// connection reset.
	drainOctets = 1 << 20
	// minReadBuffer is the read buffer's size at first: it takes a hello, or a short message. One
	// that is full grows to readAhead, and then to the longest frame that comes. One in which
	// nothing came for a while has quietReadBuffer.
	minReadBuffer   = 256
	readAhead       = 4 << 10
	quietReadBuffer = 32
)

// quietAt is memoryQuiet for a direction that has carried so many bytes.
func quietAt(carried int64) time.Duration {
	if carried < youngOctets {
		return youngQuiet
	}
	return memoryQuiet
}

func (l Limits) withDefaults() (Limits, error) {
	fill := func(v *int64, standard int64) { *v = orDefault(*v, standard) }
	l.MaxFragment = orDefault(l.MaxFragment, frame.MaxPayload)
	l.MaxShapes = orDefault(l.MaxShapes, 1024)
	l.MaxExchanges = orDefault(l.MaxExchanges, 256)
	fill(&l.MaxMessage, 1<<30)
	fill(&l.MaxShapeBytes, 4<<20)
	fill(&l.Window, 256<<10)
	fill(&l.MaxQueued, 64<<20)
	fill(&l.MaxHeld, 1<<20)
	if l.MaxFragment < frame.MinPayload || l.MaxFragment > frame.MaxPayload {
		return l, fmt.Errorf("max fragment %d is not within %d and %d", l.MaxFragment, frame.MinPayload,
			frame.MaxPayload)
	}
	if l.Window < frame.MinWindow {
		return l, fmt.Errorf("window %d is less than %d", l.Window, frame.MinWindow)
	}
	for name, v := range map[string]int64{"max message": l.MaxMessage, "max shapes": int64(l.MaxShapes),
		"max shape octets": l.MaxShapeBytes,
		"max exchanges":    int64(l.MaxExchanges), "max queued": l.MaxQueued, "max held": l.MaxHeld} {
		if v < 0 {
			return l, fmt.Errorf("%s is negative: %d", name, v)
		}
	}
	return l, nil
}

// atLeast raises limits to what was promised.
func (l Limits) atLeast(p *frame.Limits) Limits {
	raise(&l.MaxFragment, p.MaxFragment)
	raise(&l.MaxMessage, p.MaxMessage)
	raise(&l.MaxShapes, p.MaxShapes)
	raise(&l.MaxShapeBytes, p.MaxShapeBytes)
	raise(&l.MaxExchanges, p.MaxExchanges)
	raise(&l.Window, p.Window)
	raise(&l.MaxHeld, p.MaxHeld)
	return l
}

func raise[T int | int64](v *T, least uint64) { *v = max(*v, T(min(least, 1<<62))) }

func orDefault[T int | int64 | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Stated are the limits as a hello states them, with the defaults filled in. Errors: BadConfig.
func (l Limits) Stated() (PeerLimits, error) {
	l, err := l.withDefaults()
	if err != nil {
		return PeerLimits{}, &Error{Code: BadConfig, Err: err}
	}
	return l.stated(), nil
}

func (l Limits) stated() frame.Limits {
	return frame.Limits{MaxFragment: uint64(l.MaxFragment), MaxMessage: uint64(l.MaxMessage),
		MaxShapes: uint64(l.MaxShapes), MaxShapeBytes: uint64(l.MaxShapeBytes),
		MaxExchanges: uint64(l.MaxExchanges), Window: uint64(l.Window), MaxHeld: uint64(l.MaxHeld),
		Far: true}
}

func bounded(v uint64) int64 { return int64(min(v, 1<<62)) }

// inFlight is how many exchanges this end begins at a time with a peer of such limits.
func inFlight(peer frame.Limits) int64 { return int64(min(peer.MaxExchanges, maxFlight)) }
