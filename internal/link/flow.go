package link

import (
	"context"
	"io"
	"sync"
	"time"
)

// flow is one direction of one connection: packets in transit, and those that arrived and are
// unread.
type flow struct {
	link *Link
	way  *linkDirection
	// window is the maximum number of bytes in transit or unread: enough that it never leaves the
	// line idle, and that a paused reader stops its writer.
	window int

	mu      sync.Mutex
	packets []packet
	octets  int
	ended   *time.Time // time at which the end of the flow arrives, once it was written
	deaf    *time.Time // time at which the writer learns that nobody reads any more
	changed chan struct{}
}

type packet struct {
	octets []byte
	at     time.Time // time of arrival
}

func newFlow(l *Link, w *linkDirection) *flow {
	p := l.profile
	return &flow{link: l, way: w, window: p.Queue + p.carried(p.RTT/2) + receiveBuffer, changed: make(chan struct{})}
}

// changedLocked wakes all waiting goroutines.
func (f *flow) changedLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// await waits until the flow changed, or for d if that is not below 0. Its error is the cause of
// until's end.
func (f *flow) await(until context.Context, changed <-chan struct{}, d time.Duration) error {
	var fired <-chan time.Time
	if d >= 0 {
		t := f.link.clock.NewTimer(d)
		defer t.Stop()
		fired = t.C()
	}
	select {
	case <-changed:
	case <-fired:
	case <-until.Done():
		return context.Cause(until)
	}
	return nil
}

// read returns bytes that arrived, io.EOF after the last, and waits until there are some.
func (f *flow) read(until context.Context, p []byte) (int, error) {
	for {
		if until.Err() != nil {
			return 0, context.Cause(until)
		}
		f.mu.Lock()
		now := f.link.clock.Now()
		next := time.Duration(-1)
		switch {
		case len(f.packets) > 0 && !f.packets[0].at.After(now):
			n := f.takeLocked(p, now)
			f.mu.Unlock()
			return n, nil
		case len(f.packets) > 0:
			next = f.packets[0].at.Sub(now)
		case f.ended != nil && !f.ended.After(now):
			f.mu.Unlock()
			return 0, io.EOF
		case f.ended != nil:
			next = f.ended.Sub(now)
		}
		changed := f.changed
		f.mu.Unlock()
		if len(p) == 0 {
			return 0, nil
		}
		if err := f.await(until, changed, next); err != nil {
			return 0, err
		}
	}
}

// takeLocked fills p from the packets that arrived.
func (f *flow) takeLocked(p []byte, now time.Time) (n int) {
	for n < len(p) && len(f.packets) > 0 && !f.packets[0].at.After(now) {
		first := &f.packets[0]
		some := copy(p[n:], first.octets)
		n += some
		first.octets = first.octets[some:]
		if len(first.octets) == 0 {
			f.packets = f.packets[1:]
		}
	}
	f.octets -= n
	f.changedLocked()
	return n
}

// write queues p, packet by packet, and waits while the queue is full.
func (f *flow) write(until context.Context, p []byte) (n int, err error) {
	for n < len(p) {
		size := min(mss, len(p)-n)
		if err := f.admit(until, size); err != nil {
			return n, err
		}
		if err := f.queue(until, p[n:n+size]); err != nil {
			return n, err
		}
		n += size
	}
	return n, nil
}

// admit waits until that many bytes fit into the window.
func (f *flow) admit(until context.Context, size int) error {
	for {
		if until.Err() != nil {
			return context.Cause(until)
		}
		f.mu.Lock()
		switch {
		case f.deafLocked():
			f.mu.Unlock()
			return io.ErrClosedPipe
		case f.octets+size <= f.window || f.deaf != nil:
			f.mu.Unlock()
			return nil
		}
		changed := f.changed
		f.mu.Unlock()
		if err := f.await(until, changed, -1); err != nil {
			return err
		}
	}
}

func (f *flow) deafLocked() bool { return f.deaf != nil && !f.deaf.After(f.link.clock.Now()) }

// queue puts one packet on the line, in turn with other writers.
func (f *flow) queue(until context.Context, octets []byte) error {
	select {
	case f.way.turn <- struct{}{}:
		defer func() { <-f.way.turn }()
	case <-until.Done():
		return context.Cause(until)
	}
	for wait := f.way.room(len(octets)); wait > 0; wait = f.way.room(len(octets)) {
		if err := f.link.clock.Sleep(until, wait); err != nil {
			return err
		}
	}
	at := f.way.send(len(octets))
	f.link.arrived(at)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf != nil {
		return nil // it takes its time on the line, and nobody reads it
	}
	f.packets = append(f.packets, packet{append([]byte(nil), octets...), at})
	f.octets += len(octets)
	f.changedLocked()
	return nil
}

// end writes the end of the flow.
func (f *flow) end() {
	at := f.way.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = &at
		f.changedLocked()
	}
}

// deafen drops what arrives from now on; the writer learns that half a round trip later.
func (f *flow) deafen(other *linkDirection) {
	at := other.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf == nil {
		f.deaf = &at
		f.packets, f.octets = nil, 0
		f.changedLocked()
	}
}

// abandoned reports whether nobody reads any more.
func (f *flow) abandoned() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deaf != nil
}
