package link

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

const (
	// mss is the payload of a packet, in bytes; headers is the size of IP and TCP headers. Together
	// they are the MTU of 1500.
	mss     = 1460
	headers = 40
	// minQueue is the smallest queue, in bytes: four packets.
	minQueue = 4 * (mss + headers)
	// receiveBuffer is the size of the unread data at the receiving end of a connection, in bytes.
	receiveBuffer = 8 << 10
)

// linkDirection is one direction of the link: a line that sends one packet after another.
type linkDirection struct {
	clock clock.Clock
	turn  chan struct{} // owned by the writer that is next

	mu   sync.Mutex
	line Line
}

func newWay(c clock.Clock, p Profile) *linkDirection {
	return &linkDirection{clock: c, line: Line{profile: p}, turn: make(chan struct{}, 1)}
}

// sending is the time that the line takes for that many bytes.
func (p *Profile) sending(octets int64) time.Duration {
	// Whole seconds separately, so that no product overflows.
	bits := octets * 8
	return time.Duration(bits/p.Bandwidth)*time.Second + time.Duration(bits%p.Bandwidth*int64(time.Second)/p.Bandwidth)
}

// FullPackets is the time that the line takes for the full packets that that many bytes need.
func (p Profile) FullPackets(octets int64) time.Duration {
	return p.sending((octets + mss - 1) / mss * (mss + headers))
}

// room is the time until a packet of that many bytes fits into the queue.
func (w *linkDirection) room(content int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line.Room(w.clock.Now(), int64(content))
}

// send queues a packet with that many bytes of content, and returns when it arrives.
func (w *linkDirection) send(content int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line.Send(w.clock.Now(), int64(content))
}

// end is the time at which something that takes no bytes arrives if sent now: after all that is
// queued.
func (w *linkDirection) end() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.clock.Now()
	if w.line.free.After(at) {
		at = w.line.free
	}
	return at.Add(w.line.profile.RTT / 2)
}

func (w *linkDirection) stats() Direction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line.Stats()
}
