package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// plainGrace is how long Close waits for calls in plain SOAP: as long as it waits for those of a
// stream.
const plainGrace = 5 * time.Second

// plainCalls are the calls of a session in plain SOAP that have no reply yet.
type plainCalls struct {
	over   context.Context // when they must end
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	count int
	ended chan struct{} // closed when Close need not wait for them; nil: it was not called
	once  sync.Once
}

func newPlainCalls() *plainCalls {
	c := &plainCalls{}
	c.over, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// begin counts a call until answered is called, and returns its context, which lasts until end is
// called: what is left of the reply may be read then.
func (c *plainCalls) begin(ctx context.Context) (_ context.Context, answered, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.over, func() { cancel(context.Cause(c.over)) })
	answered = func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.count--; c.count == 0 && c.ended != nil {
			c.finish()
		}
	}
	return ctx, answered, func() { cancel(nil) }
}

// close gives the calls in progress a time to end; one that begins later ends with them. The
// channel is closed when they have ended, or the time is over.
func (c *plainCalls) close(by clock.Clock) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = make(chan struct{})
	if c.count == 0 {
		c.finish()
		return c.ended
	}
	timer := by.AfterFunc(plainGrace, c.finish)
	context.AfterFunc(c.over, func() { timer.Stop() })
	return c.ended
}

func (c *plainCalls) finish() {
	c.once.Do(func() {
		c.cancel(net.ErrClosed)
		close(c.ended)
	})
}

// endingReply is the body of a reply, whose end ends what lasts as long as its call.
type endingReply struct {
	io.ReadCloser
	end func()
	// plain is the context of a call in plain SOAP: if the reply breaks off, the request has none,
	// and may have been processed. nil: it is another.
	plain context.Context
}

// Read implements [io.Reader]. Errors: FateUnknown.
func (r *endingReply) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.plain != nil && err != nil && !errors.Is(err, io.EOF) {
		if r.plain.Err() != nil {
			err = context.Cause(r.plain)
		}
		err = coded(negotiate.FateUnknown, fmt.Errorf("the reply broke off: %w", err))
	}
	if err != nil {
		r.end()
	}
	return n, err
}

// Close implements [io.Closer].
func (r *endingReply) Close() error {
	defer r.end()
	return r.ReadCloser.Close()
}
