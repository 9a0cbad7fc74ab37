package proxy_test

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/proxy"
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
	waits map[*suddenTimer]bool // that are under way
}

func newSudden() *sudden { return &sudden{Clock: clock.Real(), waits: map[*suddenTimer]bool{}} }

func (s *sudden) NewTimer(d time.Duration) clock.Timer {
	return s.wait(d, s.Clock.NewTimer)
}

func (s *sudden) AfterFunc(d time.Duration, f func()) clock.Timer {
	return s.wait(d, func(d time.Duration) clock.Timer { return s.Clock.AfterFunc(d, f) })
}

func (s *sudden) wait(d time.Duration, begin func(time.Duration) clock.Timer) clock.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &suddenTimer{s: s}
	t.Timer = begin(t.beginLocked(d))
	return t
}

// end ends all such waits, present and future.
func (s *sudden) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for t := range s.waits {
		t.Timer.Reset(time.Millisecond)
	}
}

// suddenTimer is a timer on such a clock.
type suddenTimer struct {
	clock.Timer
	s *sudden
}

// beginLocked notes the begin of a wait, and returns how long it lasts.
func (t *suddenTimer) beginLocked(d time.Duration) time.Duration {
	delete(t.s.waits, t)
	switch {
	case d != ages:
		return d
	case t.s.over:
		return time.Millisecond
	}
	t.s.waits[t] = true
	return d
}

func (t *suddenTimer) Stop() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	delete(t.s.waits, t)
	return t.Timer.Stop()
}

func (t *suddenTimer) Reset(d time.Duration) bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.Timer.Reset(t.beginLocked(d))
}

// withoutEnds is a clock on which the far end hears of connections that are gone with the next call
// only, however busy the machine is.
type withoutEnds struct{ clock.Clock }

func (c withoutEnds) AfterFunc(d time.Duration, f func()) clock.Timer {
	if d != proxy.EndDelay {
		return c.Clock.AfterFunc(d, f)
	}
	return withoutEnd{c.Clock.AfterFunc(ages, f)}
}

type withoutEnd struct{ clock.Timer }

func (t withoutEnd) Reset(time.Duration) bool { return t.Timer.Reset(ages) }
