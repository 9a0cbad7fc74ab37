package sequence

import (
	"context"
	"slices"
	"sync"
)

// slots bounds the messages that are accepted and not done by their number and their bytes, first
// come, first served.
type slots struct {
	mu    sync.Mutex
	count int
	bytes int
	line  []*slotWaiter
}

// slotWaiter is a caller that waits for a slot.
type slotWaiter struct {
	bytes int
	ready chan struct{}
}

func (s *slots) init(count, bytes int) { s.count, s.bytes = count, bytes }

func (s *slots) fits(bytes int) bool { return s.count < window && s.bytes+bytes <= hold }

func (s *slots) take(bytes int) {
	s.count++
	s.bytes += bytes
}

// acquire waits for a slot; over ends the waiting too, with no error: the sequence then says why.
func (s *slots) acquire(ctx context.Context, over <-chan struct{}, bytes int) error {
	s.mu.Lock()
	if len(s.line) == 0 && s.fits(bytes) {
		s.take(bytes)
		s.mu.Unlock()
		return nil
	}
	w := &slotWaiter{bytes, make(chan struct{})}
	s.line = append(s.line, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-over:
		s.leave(w)
		return nil
	case <-ctx.Done():
		if s.leave(w) {
			s.release(bytes)
		}
		return context.Cause(ctx)
	}
}

// leave takes a waiter out of the line, and reports whether it had its slot already.
func (s *slots) leave(w *slotWaiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, w); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		return false
	}
	return true
}

// force takes a slot that may not be free.
func (s *slots) force(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(bytes)
}

// release gives a slot back.
func (s *slots) release(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	s.bytes -= bytes
	for len(s.line) > 0 && s.fits(s.line[0].bytes) {
		w := s.line[0]
		s.line = slices.Delete(s.line, 0, 1)
		s.take(w.bytes)
		close(w.ready)
	}
}
