package responder

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// life is what a responder has running. All methods are safe for concurrent use.
type life struct {
	ctx  context.Context // ends when the responder is closed
	end  context.CancelFunc
	wait sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	closers map[closer]struct{}
}

// closer runs until the responder is closed: stop waits for its end, which drain only begins.
type closer interface {
	stop()
	drain()
}

func newLife() *life {
	l := &life{closers: map[closer]struct{}{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// enter begins something that the end of the responder waits for, until leave is called; false: the
// responder is closed.
func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.wait.Add(1)
	}
	return !l.closed
}

func (l *life) leave() { l.wait.Done() }

// run runs something beside all else, which is to end with its context; false: the responder is
// closed.
func (l *life) run(do func(context.Context)) bool {
	if !l.enter() {
		return false
	}
	go func() {
		defer l.leave()
		do(l.ctx)
	}()
	return true
}

// onClose has c stopped at the end, until offClose is called. false: the responder is closed
// already.
func (l *life) onClose(c closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closers[c] = struct{}{}
	return true
}

func (l *life) offClose(c closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.closers, c)
}

// shut lets nothing more begin, and returns what runs.
func (l *life) shut() []closer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return slices.Collect(maps.Keys(l.closers))
}

// close ends all that runs, and waits for it.
func (l *life) close() {
	var stops sync.WaitGroup // not l.wait, which drain may be waiting for
	for _, c := range l.shut() {
		stops.Go(c.stop)
	}
	l.end()
	stops.Wait()
	l.wait.Wait()
}

// drain lets nothing more begin, and waits until all that runs has ended in order, or until ctx is
// done. Then its error is the cause of that.
func (l *life) drain(ctx context.Context) error {
	for _, c := range l.shut() {
		c.drain()
	}
	over := make(chan struct{})
	go func() {
		l.wait.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
