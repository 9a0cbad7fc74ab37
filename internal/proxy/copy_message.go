package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

var copying = sync.Pool{New: func() any { b := make([]byte, sock.MaxSpace); return &b }}

// copyMessage writes head, and the body of m as it arrives, which it passes to b, if that is not
// nil. What is there goes in one write, since each write is a packet. The error is that of the
// message, or errUntaken.
func copyMessage(to io.Writer, head []byte, m *streamer.Message, b *http1.Body) error {
	space := copying.Get().(*[]byte)
	defer copying.Put(space)
	all := append((*space)[:0], head...)
	for {
		read := m.ReadReady
		if len(all) == 0 {
			read = m.Body.Read
		}
		n, err := read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		if b != nil {
			_, _ = pass(b, all[len(all)-n:])
		}
		if n > 0 && err == nil && len(all) < cap(all) {
			continue // there may be more
		}
		if _, bad := to.Write(all); bad != nil {
			return errors.Join(errUntaken, bad)
		}
		all = (*space)[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyFramed writes a message whose body is framed or coded anew, as it was received. The error is
// that of copyMessage, errLongChunk, or Malformed.
func copyFramed(to io.Writer, c *controlMessage, m *streamer.Message, limit int) error {
	if c.coding != nil {
		return copyCoded(to, c, m)
	}
	w := &framedWriter{to: to, framing: c.framing.Rechunk(), out: bytes.Clone(c.head.Octets), limit: limit}
	err := copyMessage(w, nil, m, nil)
	switch {
	case w.framing.Held() > limit:
		return errLongChunk
	case err != nil:
		return err
	}
	if _, err := to.Write(w.framing.End(w.out)); err != nil {
		return errors.Join(errUntaken, err)
	}
	return nil
}

// framedWriter frames the entity that is written to it.
type framedWriter struct {
	to      io.Writer
	framing *http1.Rechunker
	out     []byte // what is to be written, some of which waits for the end
	limit   int    // of what the framing holds
}

func (w *framedWriter) Write(p []byte) (int, error) {
	w.out = w.framing.Append(w.out, p)
	if w.framing.Held() > w.limit {
		return 0, errLongChunk
	}
	if len(w.out) < sock.MaxSpace {
		return len(p), nil
	}
	_, err := w.to.Write(w.out)
	w.out = w.out[:0]
	return len(p), err
}

// copyRest writes a message whose body is everything after its head, which it passes to b, if that
// is not nil. Errors are those of copyMessage, and http1's for a body that is not as it travels
// unframed.
func copyRest(to io.Writer, c *controlMessage, m *streamer.Message, b *http1.Body) error {
	if c.unframed == nil {
		return copyMessage(to, c.head.Octets, m, b)
	}
	w := &reframedWriter{to: to, reframer: c.unframed, head: c.head.Octets, body: b}
	err := copyMessage(w, nil, m, nil)
	switch {
	case w.bad != nil:
		return w.bad
	case err == nil && w.reframer.Held() > 0:
		return malformed("body ends inside a mark")
	}
	return err
}

// reframedWriter writes the head, and the body with the framing that it travelled without.
type reframedWriter struct {
	to       io.Writer
	reframer *http1.Reframer
	head     []byte // until it is written
	body     *http1.Body
	out      []byte
	bad      error
}

func (w *reframedWriter) Write(p []byte) (int, error) {
	n := len(w.head)
	w.out, w.bad = w.reframer.Append(append(w.out[:0], w.head...), p)
	if w.head = nil; w.bad != nil {
		return 0, w.bad
	}
	if w.body != nil {
		_, _ = pass(w.body, w.out[n:])
	}
	_, err := w.to.Write(w.out)
	return len(p), err
}

// closeBody closes what may be closed.
func closeBody(r io.Reader) {
	if c, ok := r.(io.Closer); ok {
		_ = c.Close()
	}
}
