package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
)

// inlet reads a connection ahead into a bounded buffer, so that its end is seen while nobody waits for octets, and that waiting can be given up. One goroutine
// at a time waits and takes.
type inlet struct {
	conn  net.Conn
	clock clock.Clock
	onEnd func() // called once, when nothing more comes; nil: nobody
	done  chan struct{}

	mu      sync.Mutex
	max     int
	buf     []byte
	at      int // octets of buf that are taken
	err     error
	changed chan struct{} // closed at the next change
}

// readStep is how much is read at once, in octets.
const readStep = 16 << 10

// errPaused says that nothing came for as long as was waited.
var errPaused = errors.New("nothing came in time")

func newInlet(conn net.Conn, max int, c clock.Clock) *inlet {
	return &inlet{conn: conn, max: max, clock: c, done: make(chan struct{}), changed: make(chan struct{})}
}

// start begins to read. The goroutine ends with the connection; done tells.
func (in *inlet) start() { go in.pump() }

func (in *inlet) pump() {
	defer close(in.done)
	scratch := make([]byte, readStep)
	for {
		n, err := in.conn.Read(scratch)
		in.mu.Lock()
		in.appendLocked(scratch[:n])
		in.err = err
		in.changeLocked()
		for in.err == nil && len(in.buf)-in.at >= in.max {
			wait := in.changed
			in.mu.Unlock()
			<-wait
			in.mu.Lock()
		}
		in.mu.Unlock()
		if err != nil {
			if in.onEnd != nil {
				in.onEnd()
			}
			return
		}
	}
}

// appendLocked adds octets. What is taken is left behind where there is no room for them, or a
// connection that is never taken to its end would keep several times max.
func (in *inlet) appendLocked(b []byte) {
	if in.at > 0 && len(in.buf)+len(b) > cap(in.buf) {
		rest := in.buf[in.at:] // not moved: somebody may look at it
		in.buf, in.at = append(make([]byte, 0, len(rest)+max(len(b), len(rest)/2)), rest...), 0
	}
	in.buf = append(in.buf, b...)
}

func (in *inlet) changeLocked() {
	close(in.changed)
	in.changed = make(chan struct{})
}

// close ends the reading as well as the connection, and waits for that.
func (in *inlet) close() {
	_ = in.conn.Close()
	in.mu.Lock()
	in.at, in.buf = 0, nil
	in.changeLocked()
	in.mu.Unlock()
	<-in.done
}

// wait gives what is there, once that is more than have octets; the slice is good until take. With the end of the connection, also with less, err is not nil: [io.EOF]
// for the end in order. d > 0: errPaused after so long.
func (in *inlet) wait(ctx context.Context, have int, d time.Duration) ([]byte, error) {
	var late <-chan time.Time
	for {
		in.mu.Lock()
		data, err, changed := in.buf[in.at:len(in.buf):len(in.buf)], in.err, in.changed
		in.mu.Unlock()
		switch {
		case len(data) > have:
			return data, nil
		case err != nil:
			return data, err
		case ctx.Err() != nil:
			return data, context.Cause(ctx)
		}
		if d > 0 && late == nil {
			timer := in.clock.NewTimer(d)
			defer timer.Stop()
			late = timer.C()
		}
		select {
		case <-changed:
		case <-late:
			return data, errPaused
		case <-ctx.Done():
			return data, context.Cause(ctx)
		}
	}
}

// allow changes how much is read ahead.
func (in *inlet) allow(max int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.max = max
	in.changeLocked()
}

// peek gives what is there, without waiting.
func (in *inlet) peek() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.buf[in.at:len(in.buf):len(in.buf)]
}

// take takes n octets from the front.
func (in *inlet) take(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at = min(in.at+n, len(in.buf))
	if in.at == len(in.buf) {
		in.at, in.buf = 0, in.buf[:0]
		if cap(in.buf) > 4*readStep {
			in.buf = nil // one long message must not keep its room for the life of the connection
		}
	} else if in.at > len(in.buf)/2 {
		in.buf = append([]byte(nil), in.buf[in.at:]...)
		in.at = 0
	}
	in.changeLocked()
}

// over tells that the connection has ended, even where octets are left.
func (in *inlet) over() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err != nil
}

// lengthReader reads n octets of an inlet and no more.
type lengthReader struct {
	ctx  context.Context
	in   *inlet
	left int64
	once sync.Once
	done chan struct{} // closed when it is read to its end, or closed
}

func newLengthReader(ctx context.Context, in *inlet, n int64) *lengthReader {
	return &lengthReader{ctx: ctx, in: in, left: n, done: make(chan struct{})}
}

// Read gives octets as they come. The end of the connection before the end of the body is io.ErrUnexpectedEOF.
func (r *lengthReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		r.finish()
		return 0, io.EOF
	}
	data, err := r.in.wait(r.ctx, 0, 0)
	if len(data) == 0 {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	n := copy(p[:min(int64(len(p)), r.left)], data)
	r.in.take(n)
	r.left -= int64(n)
	return n, nil
}

// Close says that nobody reads it any more.
func (r *lengthReader) Close() error {
	r.finish()
	return nil
}

func (r *lengthReader) finish() { r.once.Do(func() { close(r.done) }) }
