package link

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

const (
	// mss is what a packet carries, in bytes; headers is what IP and TCP add to it. Together they
	// are the MTU of 1500.
	mss     = 1460
	headers = 40
	// minQueue is the smallest queue, in bytes: four packets.
	minQueue = 4 * (mss + headers)
	// receiveBuffer is what the receiving end of a connection holds unread, in bytes.
	receiveBuffer = 8 << 10
)

// way is one direction of the link: a line that sends one packet after another.
type way struct {
	clock   clock.Clock
	profile Profile
	turn    chan struct{} // held by the writer that is next

	mu    sync.Mutex
	free  time.Time // when the line has sent all that is queued
	count Direction
}

func newWay(c clock.Clock, p Profile) *way {
	return &way{clock: c, profile: p, turn: make(chan struct{}, 1)}
}

// sending is how long the line takes for so many bytes.
func (p *Profile) sending(octets int64) time.Duration {
	// Whole seconds apart, so that no product overflows.
	bits := octets * 8
	return time.Duration(bits/p.Bandwidth)*time.Second + time.Duration(bits%p.Bandwidth*int64(time.Second)/p.Bandwidth)
}

// FullPackets is how long the line takes for the full packets that so many bytes need.
func (p Profile) FullPackets(octets int64) time.Duration {
	return p.sending((octets + mss - 1) / mss * (mss + headers))
}

// room is how long it takes until a packet of so many bytes has room in the queue; what is being
// sent just now counts to it.
func (w *way) room(octets int64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	backlog := max(w.free.Sub(w.clock.Now()), 0)
	return backlog - max(w.profile.sending(int64(w.profile.Queue)-octets), 0)
}

// send queues a packet with so many bytes of content, and says when it arrives.
func (w *way) send(content int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clock.Now(); w.free.Before(now) {
		w.free = now
	}
	wire := int64(content + headers)
	w.count.Octets += int64(content)
	w.count.Wire += wire
	w.count.Packets++
	w.free = w.free.Add(w.profile.sending(wire))
	return w.free.Add(w.profile.RTT / 2)
}

// end is when something that takes no bytes, sent now, arrives: behind all that is queued.
func (w *way) end() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.clock.Now()
	if w.free.After(at) {
		at = w.free
	}
	return at.Add(w.profile.RTT / 2)
}

func (w *way) stats() Direction {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.count
	d.Busy = w.profile.sending(d.Wire)
	return d
}
