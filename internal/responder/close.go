package responder

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Close ends all streams, after what was accepted is written, makes ServeStreams return, and waits
// for everything that it started. It is idempotent. Listeners are closed; Store and Coders are not.
func (r *Responder) Close() error {
	closers := r.shut()
	r.mu.Lock()
	if r.extends != nil {
		r.extends.Stop()
	}
	r.mu.Unlock()
	var stops sync.WaitGroup // not r.wait, which Shutdown may be waiting for
	for _, c := range closers {
		stops.Go(c.stop)
	}
	r.stop()
	stops.Wait()
	r.wait.Wait()
	return nil
}

// Shutdown is Close for what takes longer: it accepts nothing more, lets nothing begin on the
// streams, and waits until what is under way there is over and they have ended in order, or until
// ctx is done. Then its error is the cause of that, and what is left goes on until Close.
func (r *Responder) Shutdown(ctx context.Context) error {
	for _, c := range r.shut() {
		c.drain()
	}
	over := make(chan struct{})
	go func() {
		r.wait.Wait()
		close(over)
	}()
	select {
	case <-over:
		return r.Close()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shut lets nothing more begin, and returns what runs.
func (r *Responder) shut() []closer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return slices.Collect(maps.Keys(r.closers))
}

// closer runs until the responder is closed: stop waits for its end, which drain only begins.
type closer interface {
	stop()
	drain()
}

// onClose makes Close stop c, until offClose is called. false: the responder is closed already.
func (r *Responder) onClose(c closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.closers[c] = struct{}{}
	return true
}

func (r *Responder) offClose(c closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closers, c)
}
