package streamer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// streamEnd is how far a stream is on its way to its end.
type streamEnd struct {
	failed atomic.Bool // changed under mu

	mu        sync.Mutex
	wrote     bool         // our last byte is written
	deaf      bool         // nothing more is received
	lastFrame *frame.Close // what a stream that failed says last
	err       *Error
	linger    *time.Timer
	over      bool
	after     func() // called when it is over; nil: nothing
}

// begin is false for a stream that has failed already, or of which nothing is left to fail.
func (d *streamEnd) begin(e *Error, lastFrame *frame.Close) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed.Load() || d.wrote && d.deaf {
		return false
	}
	d.err = e
	if !d.wrote {
		d.lastFrame = lastFrame
	}
	d.failed.Store(true)
	return true
}

// failure is why the stream failed, nil if it did not.
func (d *streamEnd) failure() *Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *streamEnd) hasFailed() bool { return d.failed.Load() }

// lastWord is what a stream that failed says; failed is false for one that did not.
func (d *streamEnd) lastWord() (word *frame.Close, failed bool) {
	if !d.failed.Load() {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastFrame, true
}

// then has after called at the end; over: that is behind us.
func (d *streamEnd) then(after func()) (over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after = after
	return d.over
}

// finish is the end; it gives what is to be called then, nil for nothing, and why the stream
// failed.
func (d *streamEnd) finish() (after func(), why *Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.linger != nil {
		d.linger.Stop()
	}
	d.over = true
	return d.after, d.err
}
