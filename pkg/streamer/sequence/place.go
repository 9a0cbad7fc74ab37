package sequence

import (
	"context"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/streamer"
)

func placeOf(wanted bool) streamer.Place { return streamer.Place{Wanted: wanted} }

// admission bounds the messages that are accepted and not done by their number and their octets, first come, first served.
type admission struct {
	mu     sync.Mutex
	count  int
	octets int
	line   []*ticket
}

type ticket struct {
	octets int
	ready  chan struct{}
}

func (p *admission) init(count, octets int) { p.count, p.octets = count, octets }

func (p *admission) fits(octets int) bool { return p.count < window && p.octets+octets <= hold }

// enter waits for room; over ends the waiting too, with no error: the sequence then says why.
func (p *admission) enter(ctx context.Context, over <-chan struct{}, octets int) error {
	p.mu.Lock()
	if len(p.line) == 0 && p.fits(octets) {
		p.count++
		p.octets += octets
		p.mu.Unlock()
		return nil
	}
	t := &ticket{octets, make(chan struct{})}
	p.line = append(p.line, t)
	p.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-over:
		p.leave(t)
		return nil
	case <-ctx.Done():
		if p.leave(t) {
			p.release(1, octets)
		}
		return context.Cause(ctx)
	}
}

// leave takes a ticket out of the line, and tells whether it had its turn already.
func (p *admission) leave(t *ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.line, t); i >= 0 {
		p.line = slices.Delete(p.line, i, i+1)
		return false
	}
	return true
}

// force takes room that there may not be.
func (p *admission) force(octets int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.octets += octets
}

// release gives room back.
func (p *admission) release(count, octets int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count -= count
	p.octets -= octets
	for len(p.line) > 0 && p.fits(p.line[0].octets) {
		t := p.line[0]
		p.line = slices.Delete(p.line, 0, 1)
		p.count++
		p.octets += t.octets
		close(t.ready)
	}
}
