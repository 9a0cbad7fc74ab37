package streamer

import (
	"sync"
	"sync/atomic"
)

// onceSignal is given once. The channel for those who wait for it is made for the first of them:
// most signals of an idle stream nobody waits for.
type onceSignal struct {
	given atomic.Bool

	mu      sync.Mutex
	channel chan struct{}
}

// give gives the signal; it may be called again.
func (s *onceSignal) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.given.Swap(true) && s.channel != nil {
		close(s.channel)
	}
}

// wait is closed when the signal is given.
func (s *onceSignal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel == nil {
		s.channel = make(chan struct{})
		if s.given.Load() {
			close(s.channel)
		}
	}
	return s.channel
}
