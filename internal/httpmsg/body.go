package httpmsg

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// KeptBody is a body that is lent to a stream. It can be read from its start again if the stream
// did not take the message.
type KeptBody struct {
	memory bytes.Reader // a body in memory, as it was; the stream gets the original
	lent   *lentBody    // any other
	body   io.Reader
}

// Keep prepares a body, which may be nil, to be lent to a stream.
func Keep(body io.Reader) KeptBody {
	k := KeptBody{body: body}
	switch b := body.(type) {
	case nil:
	case *bytes.Reader:
		k.memory = *b
	default:
		k.lent = &lentBody{body: body, closed: make(chan struct{})}
		if seeker, ok := body.(io.Seeker); ok {
			at, err := seeker.Seek(0, io.SeekCurrent)
			k.lent.start, k.lent.seeks = at, err == nil
		}
	}
	return k
}

// Reader returns what the stream reads.
func (k *KeptBody) Reader() io.Reader {
	if k.lent != nil {
		return k.lent
	}
	return k.body
}

// Failed reports whether reading the body failed.
func (k *KeptBody) Failed() bool { return k.lent != nil && k.lent.failed.Load() }

// Release leaves the body to the stream, which closes it.
func (k *KeptBody) Release() {
	if k.lent != nil {
		k.lent.release()
	}
}

// Again returns the body from its start, once the stream has released it. ok is false when that is
// not possible; the body is then closed.
func (k *KeptBody) Again(ctx context.Context) (body io.Reader, ok bool) {
	switch {
	case k.lent != nil:
		return k.lent.again(ctx)
	case k.body == nil:
		return nil, true
	}
	again := k.memory
	return &again, true
}

// lentBody keeps a body open when the stream closes it, until it is clear that nobody else needs
// it.
type lentBody struct {
	body  io.Reader
	start int64
	seeks bool

	failed atomic.Bool

	mu       sync.Mutex
	released bool
	once     sync.Once
	closed   chan struct{} // closed when the stream reads no more
}

// Read reads the body.
func (l *lentBody) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		l.failed.Store(true)
	}
	return n, err
}

// Close records that the stream reads no more.
func (l *lentBody) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return CloseReader(l.body)
	}
	return nil
}

func (l *lentBody) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	select {
	case <-l.closed:
		_ = CloseReader(l.body)
	default:
	}
}

func (l *lentBody) again(ctx context.Context) (io.Reader, bool) {
	select {
	case <-l.closed:
	case <-ctx.Done():
		l.release()
		return nil, false
	}
	if l.seeks {
		if _, err := l.body.(io.Seeker).Seek(l.start, io.SeekStart); err == nil {
			return l.body, true
		}
	}
	l.release()
	return nil, false
}

// CloseReader closes a reader that is an io.Closer.
func CloseReader(r io.Reader) error {
	if c, ok := r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Peeked is a body whose first bytes were read already.
type Peeked struct {
	io.Reader
	io.Closer
}

// Failing returns a body that reads as an error. Without an error, and for io.EOF, it reads as
// empty.
func Failing(err error) io.Reader { return brokenBody{err} }

type brokenBody struct{ err error }

func (f brokenBody) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}
