package streamer

import (
	"context"
	"slices"
	"sync"
)

// class is what a message is, as far as places go.
type class uint8

const (
	requests class = iota // one-way messages, too
	replies
	classes
)

// places bounds the messages of several fragments that are begun and not whole by maxOpen. Neither class can take all of them: the requests that are open may be what
// replies wait for, and these what the other end's requests wait for.
type places struct {
	mu   sync.Mutex
	used [classes]int
	line [classes][]*ticket
}

// enter takes a place; a ticket is returned if it must be waited for, and must be waited for or left.
func (p *places) enter(k class) *ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line[k]) == 0 && p.fits(k) {
		p.used[k]++
		return nil
	}
	t := &ticket{n: 1, ready: make(chan struct{})}
	p.line[k] = append(p.line[k], t)
	return t
}

func (p *places) fits(k class) bool {
	return p.used[requests]+p.used[replies] < maxOpen && p.used[k] < maxOpen-keptOpen
}

// leave gives up a ticket, whether its turn had come or not.
func (p *places) leave(k class, t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.line[k], t); i >= 0 {
		p.line[k] = slices.Delete(p.line[k], i, i+1)
		return
	}
	p.used[k]--
	p.admit()
}

// release gives a place back.
func (p *places) release(k class) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[k]--
	p.admit()
}

// admit lets in who waits longest, of the class that has fewer places.
func (p *places) admit() {
	for {
		k := requests
		if p.used[replies] < p.used[requests] {
			k = replies
		}
		if len(p.line[k]) == 0 || !p.fits(k) {
			k = 1 - k
		}
		if len(p.line[k]) == 0 || !p.fits(k) {
			return
		}
		p.used[k]++
		close(p.line[k][0].ready)
		p.line[k] = slices.Delete(p.line[k], 0, 1)
	}
}

func (out *outgoing) class() class {
	if out.x != nil {
		return replies
	}
	return requests
}

// takePlace waits until the message may have more than one fragment. It does so before it takes room in any queue, which those that are open need.
func (out *outgoing) takePlace(ctx context.Context) error {
	s, k := out.s, out.class()
	if t := s.places.enter(k); t != nil {
		if err := s.await(ctx, out, t, true); err != nil {
			s.places.leave(k, t)
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.dropped != nil {
		s.places.release(k)
		return out.dropped
	}
	out.placed = true
	return nil
}
