package streamer

import (
	"math"
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

// Traffic is what one direction has carried. Other counts idle and skipped frames. Messages are
// whole ones.
type Traffic struct {
	Hello, Shape, Data, Sync, Ack, Cancel, Close, Other Count
	Messages                                            int64
}

// Octets is the sum over all frames.
func (t Traffic) Octets() int64 {
	var n int64
	for _, c := range t.counts() {
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

// trafficCounter counts what a stream carries.
type trafficCounter struct {
	mu             sync.Mutex
	sent, received recentTraffic
	before         *[2]Traffic // sent and received; nil: nothing
}

// recentTraffic is what a direction has carried since it was last added to what it carried before:
// of an idle stream it is all, and takes little. Kinds are in the order of the fields of [Traffic].
type recentTraffic struct {
	octets   [trafficKinds]uint32
	frames   [trafficKinds]uint16
	messages uint16
}

const (
	trafficKinds = 8
	// recentFrames and recentOctets are how many of a kind are counted at most before they are
	// added.
	recentFrames, recentOctets = math.MaxUint16, math.MaxUint32
)

// wrote counts frames that are about to be written, with which so many messages ended.
func (c *trafficCounter) wrote(frames []wire.Written, messages int32) {
	if len(frames) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range frames {
		c.countLocked(&c.sent, frames[i].Kind, frames[i].Octets)
	}
	c.endLocked(&c.sent, messages)
}

// read counts a frame that came; last: with the end of a message.
func (c *trafficCounter) read(kind FrameKind, octets int, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countLocked(&c.received, kind, octets)
	if last {
		c.endLocked(&c.received, 1)
	}
}

// countLocked counts a frame of a direction.
func (c *trafficCounter) countLocked(t *recentTraffic, kind FrameKind, octets int) {
	k := kindOf(kind)
	if t.frames[k] == recentFrames || t.octets[k] > recentOctets-uint32(octets) {
		c.add()
	}
	t.frames[k]++
	t.octets[k] += uint32(octets) // of one frame, far less than they can be
}

// endLocked counts messages that ended, fewer than there can be frames in a batch.
func (c *trafficCounter) endLocked(t *recentTraffic, messages int32) {
	if int32(t.messages) > recentFrames-messages {
		c.add()
	}
	t.messages += uint16(messages)
}

// add adds what is recent to what was before.
func (c *trafficCounter) add() {
	if c.before == nil {
		c.before = new([2]Traffic)
	}
	c.sent.addTo(&c.before[0])
	c.received.addTo(&c.before[1])
	c.sent, c.received = recentTraffic{}, recentTraffic{}
}

func (t *recentTraffic) addTo(to *Traffic) {
	for kind, c := range to.counts() {
		c.Frames += int64(t.frames[kind])
		c.Octets += int64(t.octets[kind])
	}
	to.Messages += int64(t.messages)
}

// both is what both directions have carried.
func (c *trafficCounter) both() (sent, received Traffic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before != nil {
		sent, received = c.before[0], c.before[1]
	}
	c.sent.addTo(&sent)
	c.received.addTo(&received)
	return sent, received
}

// counts are those of all kinds.
func (t *Traffic) counts() [trafficKinds]*Count {
	return [...]*Count{&t.Hello, &t.Shape, &t.Data, &t.Sync, &t.Ack, &t.Cancel, &t.Close, &t.Other}
}

// kindOf is the place of a kind of frames among the counts.
func kindOf(k FrameKind) int {
	switch k {
	case frame.KindHello:
		return 0
	case frame.KindShape:
		return 1
	case frame.KindData:
		return 2
	case frame.KindSync:
		return 3
	case frame.KindAck:
		return 4
	case frame.KindCancel:
		return 5
	case frame.KindClose:
		return 6
	default:
		return 7
	}
}
