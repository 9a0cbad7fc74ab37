package streamer

import (
	"slices"
	"sync"
)

// ticket is a place in a line; ready is closed when its turn has come.
type ticket struct {
	n     int64
	ready chan struct{}
}

// gate lets at most max units in, first come, first served. One that wants more than max is let in alone.
type gate struct {
	mu   sync.Mutex
	max  int64
	used int64
	line []*ticket
}

// enter takes n units; a ticket is returned if it must be waited for, and must be waited for or left.
func (g *gate) enter(n int64) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.line) == 0 && g.fits(n) {
		g.used += n
		return nil
	}
	t := &ticket{n: n, ready: make(chan struct{})}
	g.line = append(g.line, t)
	return t
}

func (g *gate) fits(n int64) bool { return g.used == 0 || g.used+n <= g.max }

// leave gives up a ticket, whether its turn had come or not.
func (g *gate) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.line, t); i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
	} else {
		g.used -= t.n
	}
	g.admit()
}

// release gives n units back.
func (g *gate) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
	g.admit()
}

func (g *gate) admit() {
	for len(g.line) > 0 && g.fits(g.line[0].n) {
		t := g.line[0]
		g.line = slices.Delete(g.line, 0, 1)
		g.used += t.n
		close(t.ready)
	}
}

// room keeps the requests of this end within the octets that the other end queues. A message counts until it is answered, or, if one-way, whole. Of the messages that are not whole, the oldest may
// take all of the room, the others half of it, so that two of them never wait for each other. The oldest goes on beyond it when it would wait in vain, that is, for no
// whole message: it may be longer than the room if its receiver takes it as it comes.
type room struct {
	mu    sync.Mutex
	max   int64
	used  int64
	whole int64 // that of whole messages
	open  []*claim
	line  []*claim
}

// claim is what one message takes of a room.
type claim struct {
	used  int64
	whole bool
	free  bool
	wait  ticket
}

// begin has a message wait for nothing but octets from now on.
func (r *room) begin(c *claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.free {
		return
	}
	r.open = append(r.open, c)
}

// take is [gate.enter] for a further n octets of c's message.
func (r *room) take(c *claim, n int64) *ticket {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.free {
		return nil
	}
	if r.fits(c, n) && (len(r.line) == 0 || r.first(c)) {
		r.add(c, n)
		return nil
	}
	c.wait = ticket{n: n, ready: make(chan struct{})}
	r.line = append(r.line, c)
	return &c.wait
}

func (r *room) first(c *claim) bool { return len(r.open) > 0 && r.open[0] == c }

func (r *room) fits(c *claim, n int64) bool {
	if r.first(c) {
		return r.used+n <= r.max || r.whole == 0
	}
	return r.used+n <= r.max/2
}

func (r *room) add(c *claim, n int64) {
	c.used += n
	r.used += n
}

// complete tells that the message wants no more.
func (r *room) complete(c *claim) { r.end(c, false) }

// answered gives back what the message has, and counts it no more.
func (r *room) answered(c *claim) { r.end(c, true) }

// end may be called any number of times for a claim.
func (r *room) end(c *claim, free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.open, c); i >= 0 {
		r.open = slices.Delete(r.open, i, i+1)
	}
	if !free && !c.whole && !c.free {
		c.whole = true
		r.whole += c.used
	}
	if free && !c.free {
		c.free = true
		r.used -= c.used
		if c.whole {
			r.whole -= c.used
		}
	}
	blocked := false
	r.line = slices.DeleteFunc(r.line, func(w *claim) bool {
		fits := w.free || r.fits(w, w.wait.n) && (!blocked || r.first(w))
		blocked = blocked || !fits
		if fits {
			if !w.free {
				r.add(w, w.wait.n)
			}
			close(w.wait.ready)
		}
		return fits
	})
}
