package proxy

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// pass tracks a body whose bytes are passed on unchanged and returns how many of data belong to it.
func pass(b *http1.Body, data []byte) (n int, err error) {
	for n < len(data) && !b.Done() {
		_, k, err := b.Write(data[n:])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

var (
	// errOdd is what [stream] returns for bytes that are no HTTP.
	errOdd = errors.New("no HTTP any more")
	// errUntaken is what it returns when the receiver accepts no more.
	errUntaken = errors.New("not taken")
	// errLongChunk is the error of a message whose last chunk is longer than one may be.
	errLongChunk = errors.New("a chunk is too long")
)

// arriving is a body that is sent as it comes.
type arriving struct {
	body *http1.Body // nil: everything until the connection ends
	size string      // of its chunks, if they have one
	// known is its length, if it may pause for longer than what has none; else 0.
	known int64
	// pause is how long it may pause until what came is sent; 0: at once, atLeisure: as long as the
	// writer has it wait.
	pause time.Duration
	// paused: it did, for as long as it may, and what came is sent at once.
	paused bool
	// drained, if given, is called when what was there before is sent.
	drained func()
}

const atLeisure = -1

// arriving is the body of a message with the head h that is sent as it comes, which is what line
// says. What is no XML is sent at once, since somebody may wait for it. XML may wait a moment for
// its rest, since it travels best in one part; not longer than Gather, where framing that somebody
// may wait for is held back. st is how it was waited for in vain.
func (p *core) arriving(h *http1.Head, f http1.Framing, line, size string, st waitResult) arriving {
	a := arriving{body: http1.NewBody(f), size: size, paused: st == statePaused}
	switch {
	case size != "":
		a.pause = p.cfg.Gather
	case line != restLine && isXML(h, nil):
		a.pause = atLeisure
		if f.Kind == http1.Length {
			a.known = f.Length
		}
	}
	return a
}

// length is that of the body, as a writer takes it.
func (a *arriving) length() int64 {
	if a.known == 0 {
		return -1
	}
	return a.known
}

// headGoes reports whether the head of a message goes to the peer before anything of its body, of
// which so many bytes came.
func (a *arriving) headGoes(request bool, there int) bool {
	return request && a.known == 0 || (a.paused || a.pause == 0 && !request) && there == 0
}

// stream sends incoming bytes as the body of a message, until that is complete. The error is nil
// then; otherwise it is errOdd, errUntaken, or that of the connection.
func stream(ctx context.Context, in *sock.Source, w bodyWriter, a arriving) error {
	b := a.body
	for b == nil || !b.Done() {
		data, err := in.Wait(ctx, 0, max(a.pause, 0))
		if errors.Is(err, sock.ErrPaused) {
			if err := w.Flush(); err != nil {
				return errors.Join(errUntaken, err)
			}
			data, err = in.Wait(ctx, 0, 0)
		}
		if len(data) == 0 {
			return err
		}
		data = data[:min(len(data), sock.MaxSpace)]
		n := len(data)
		var bad error
		if b != nil {
			n, bad = pass(b, data)
		}
		if _, err := w.Write(data[:n]); err != nil {
			return errors.Join(errUntaken, err)
		}
		in.Take(n)
		if a.drained != nil && len(in.Peek()) == 0 {
			a.drained()
			a.drained = nil
		}
		switch {
		case bad != nil:
			return errOdd
		case (a.pause == 0 || a.paused) && in.Drained() && (b == nil || !b.Done()):
			a.paused = false
			if err := w.Flush(); err != nil {
				return errors.Join(errUntaken, err)
			}
		}
	}
	return nil
}

// endWriter ends a message according to the outcome of its body: only an orderly end makes it
// whole.
func endWriter(w *streamer.Writer, err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, errOdd) {
		_ = w.Close()
		return
	}
	w.Abort(err)
}

// unframedWriter writes a body without the framing of its chunks of one size.
type unframedWriter struct {
	to       bodyWriter
	unframer *http1.Unframer
	out      []byte
}

// unframing returns where the bytes of a body are written as they come, and what is called when no
// more come; size is that of the chunks, if they have one.
func unframing(to bodyWriter, size string) (w bodyWriter, end func()) {
	if size == "" {
		return to, func() {}
	}
	u := &unframedWriter{to: to, unframer: http1.NewUnframer(size)}
	return u, func() {
		if out := u.unframer.End(nil); len(out) > 0 {
			_, _ = u.to.Write(out) // its failure is that of the end
		}
	}
}

func (w *unframedWriter) Write(p []byte) (int, error) {
	w.out = w.unframer.Append(w.out[:0], p)
	_, err := w.to.Write(w.out)
	return len(p), err
}

func (w *unframedWriter) Flush() error {
	if w.out = w.unframer.Flush(w.out[:0]); len(w.out) > 0 {
		if _, err := w.to.Write(w.out); err != nil {
			return err
		}
	}
	return w.to.Flush()
}

// bodyWriter writes the body of a message to a stream.
type bodyWriter interface {
	io.Writer
	Flush() error
}
