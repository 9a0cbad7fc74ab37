package inproc

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const defaultBuffer = 64 << 10

// Pipe is a pair of connected ends. buffer is how many bytes each direction takes before a write
// waits; 0 means 64 KiB. Both ends have CloseWrite() error and
// TryWrite(p []byte) int.
func Pipe(buffer int) (net.Conn, net.Conn) { return pipe(buffer, "pipe") }

func pipe(buffer int, addr Addr) (net.Conn, net.Conn) {
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	a, b := newWay(buffer), newWay(buffer)
	return &pipeEnd{in: a, out: b, addr: addr}, &pipeEnd{in: b, out: a, addr: addr}
}

// pipeEnd is one end: it reads from one way and writes to the other.
type pipeEnd struct {
	in, out *pipeBuffer
	addr    Addr
}

func (c *pipeEnd) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *pipeEnd) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *pipeEnd) TryWrite(p []byte) int       { return c.out.tryWrite(p) }
func (c *pipeEnd) LocalAddr() net.Addr         { return c.addr }
func (c *pipeEnd) RemoteAddr() net.Addr        { return c.addr }

// Close ends both ways: the peer reads what is there and then EOF, and writes in vain.
func (c *pipeEnd) Close() error {
	c.out.endWriting()
	c.in.endReading()
	return nil
}

// CloseWrite ends the way out.
func (c *pipeEnd) CloseWrite() error {
	c.out.endWriting()
	return nil
}

func (c *pipeEnd) SetDeadline(t time.Time) error {
	c.in.until(&c.in.reader, t)
	c.out.until(&c.out.writer, t)
	return nil
}

func (c *pipeEnd) SetReadDeadline(t time.Time) error {
	c.in.until(&c.in.reader, t)
	return nil
}

func (c *pipeEnd) SetWriteDeadline(t time.Time) error {
	c.out.until(&c.out.writer, t)
	return nil
}

// pipeBuffer is one direction: a ring of bytes.
type pipeBuffer struct {
	mu             sync.Mutex
	changed        sync.Cond
	buf            []byte
	start, used    int
	reader, writer pipeDeadline
	ended, deaf    bool // the writing end has closed, the reading end has
}

// pipeDeadline is that of one end of a way; late tells that it has passed.
type pipeDeadline struct {
	timer *time.Timer
	late  bool
}

func newWay(buffer int) *pipeBuffer {
	w := &pipeBuffer{buf: make([]byte, buffer)}
	w.changed.L = &w.mu
	return w
}

func (w *pipeBuffer) read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.deaf:
			return 0, io.ErrClosedPipe
		case w.reader.late:
			return 0, os.ErrDeadlineExceeded
		case w.used > 0 || len(p) == 0:
			n := copy(p, w.buf[w.start:min(w.start+w.used, len(w.buf))])
			w.start = (w.start + n) % len(w.buf)
			w.used -= n
			w.changed.Broadcast()
			return n, nil
		case w.ended:
			return 0, io.EOF
		}
		w.changed.Wait()
	}
}

func (w *pipeBuffer) write(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.ended || w.deaf:
			return n, io.ErrClosedPipe
		case w.writer.late:
			return n, os.ErrDeadlineExceeded
		}
		k := w.fill(p)
		n += k
		if p = p[k:]; len(p) == 0 {
			return n, nil
		}
		w.changed.Wait()
	}
}

// tryWrite writes what there is room for.
func (w *pipeBuffer) tryWrite(p []byte) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.deaf || w.writer.late {
		return 0
	}
	return w.fill(p)
}

func (w *pipeBuffer) fill(p []byte) (n int) {
	for n < len(p) && w.used < len(w.buf) {
		end := (w.start + w.used) % len(w.buf)
		k := copy(w.buf[end:min(end+len(w.buf)-w.used, len(w.buf))], p[n:])
		w.used += k
		n += k
		w.changed.Broadcast()
	}
	return n
}

func (w *pipeBuffer) endWriting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.stop(&w.writer)
	w.changed.Broadcast()
}

func (w *pipeBuffer) endReading() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = true
	w.stop(&w.reader)
	w.changed.Broadcast()
}

func (w *pipeBuffer) stop(d *pipeDeadline) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// until sets a deadline; the zero time is none.
func (w *pipeBuffer) until(d *pipeDeadline, t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop(d)
	d.late = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.late = true
		w.changed.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if d.timer == timer {
			d.late = true
			w.changed.Broadcast()
		}
	})
	d.timer = timer
}
