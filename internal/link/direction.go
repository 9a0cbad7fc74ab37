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
	clock   clock.Clock
	profile Profile
	turn    chan struct{} // owned by the writer that is next

	mu    sync.Mutex
	free  time.Time // time at which the line has sent all that is queued
	count Direction
}

func newWay(c clock.Clock, p Profile) *linkDirection {
	return &linkDirection{clock: c, profile: p, turn: make(chan struct{}, 1)}
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

// room is the time until a packet of that many bytes fits into the queue; the packet that is being
// sent counts.
func (w *linkDirection) room(octets int64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	backlog := max(w.free.Sub(w.clock.Now()), 0)
	return backlog - max(w.profile.sending(int64(w.profile.Queue)-octets), 0)
}

// send queues a packet with that many bytes of content, and returns when it arrives.
func (w *linkDirection) send(content int) time.Time {
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

// end is the time at which something that takes no bytes arrives if sent now: after all that is
// queued.
func (w *linkDirection) end() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.clock.Now()
	if w.free.After(at) {
		at = w.free
	}
	return at.Add(w.profile.RTT / 2)
}

func (w *linkDirection) stats() Direction {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.count
	d.Busy = w.profile.sending(d.Wire)
	return d
}
