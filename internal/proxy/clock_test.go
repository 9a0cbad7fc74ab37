package proxy_test

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// ages is a wait longer than any other.
const ages = 61 * time.Minute

// sudden is the machine's clock until a test ends all waits of that length: so a busy machine is
// never too slow for what must happen before.
type sudden struct {
	clock.Clock
	mu    sync.Mutex
	over  bool
	waits []clock.Timer
}

func newSudden() *sudden { return &sudden{Clock: clock.Real()} }

func (s *sudden) NewTimer(d time.Duration) clock.Timer {
	return s.wait(d, s.Clock.NewTimer)
}

func (s *sudden) AfterFunc(d time.Duration, f func()) clock.Timer {
	return s.wait(d, func(d time.Duration) clock.Timer { return s.Clock.AfterFunc(d, f) })
}

func (s *sudden) wait(d time.Duration, begin func(time.Duration) clock.Timer) clock.Timer {
	if d != ages {
		return begin(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return begin(time.Millisecond)
	}
	t := &longWait{Timer: begin(d)}
	s.waits = append(s.waits, t)
	return t
}

// end ends all such waits, present and future.
func (s *sudden) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, t := range s.waits {
		t.Reset(time.Millisecond)
	}
}

// longWait is one of them: once stopped, it does not begin again.
type longWait struct {
	clock.Timer
	mu      sync.Mutex
	stopped bool
}

func (t *longWait) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	return t.Timer.Stop()
}

func (t *longWait) Reset(d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.stopped && t.Timer.Reset(d)
}
