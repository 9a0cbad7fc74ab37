package responder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// exchangeWriter is the ResponseWriter of an exchange: a short reply is sent as a whole, a long
// one, or one that is flushed, as it comes.
type exchangeWriter struct {
	replyHead
	ctx   context.Context
	x     *streamer.Exchange
	kept  *reuse.Buffer // the beginning of the body, before the reply is begun; nil: nothing was written
	begun bool
	reply *streamer.Writer
	err   error
}

// WriteHeader sets the status, once; informational ones are sent at once.
func (w *exchangeWriter) WriteHeader(status int) {
	checkStatus(status)
	switch {
	case w.status != 0 || w.x.OneWay():
	case isInterim(status):
		// the reply itself will fail as well
		_ = w.x.Interim(w.ctx, &streamer.Message{Head: w.encode(status, w.header)})
	default:
		w.fix(status, false)
	}
}

// wholeReply is the longest reply that is buffered to be sent as a whole, in bytes.
const wholeReply = 32 << 10

// Write writes the body. Errors are also those of net/http: ErrBodyNotAllowed and ErrContentLength.
func (w *exchangeWriter) Write(p []byte) (int, error) {
	if w.x.OneWay() {
		return len(p), nil
	}
	w.WriteHeader(http.StatusOK)
	if err := w.take(len(p)); err != nil {
		return 0, err
	}
	start := w.start()
	if !w.begun && len(start)+len(p) <= wholeReply {
		w.keep(p)
		return len(p), nil
	}
	looked := 0
	if !w.begun && w.fixed != nil && len(start) < sniffed { // the type is found by the beginning
		looked = min(len(p), sniffed-len(start))
		w.keep(p[:looked])
	}
	if err := w.begin(); err != nil {
		return 0, err
	}
	n, err := w.reply.Write(p[looked:])
	return looked + n, err
}

// starts are the beginnings of replies. They are given back when the reply is sent.
var starts = reuse.Buffers{Most: wholeReply}

// keep appends to the beginning of the reply.
func (w *exchangeWriter) keep(p []byte) {
	if w.kept == nil {
		w.kept = starts.Get(len(p))
	}
	w.kept.Octets = append(w.kept.Octets, p...)
}

// start is what was kept.
func (w *exchangeWriter) start() []byte {
	if w.kept == nil {
		return nil
	}
	return w.kept.Octets
}

// wholes are for replies that are sent as a whole.
var wholes = sync.Pool{New: func() any { return streamer.NewMessage(nil, nil) }}

// sniffed is how much of a body counts for [http.DetectContentType], in bytes.
const sniffed = 512

// copying are buffers for bodies that are read while they are written.
var copying = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// ReadFrom writes a body as it comes, so that what is there goes out while the rest is waited for;
// see [io.Copy]. It is held back like any other only as long as nobody says what it is.
func (w *exchangeWriter) ReadFrom(body io.Reader) (int64, error) {
	buffer := copying.Get().(*[]byte)
	defer copying.Put(buffer)
	if _, typed := w.header["Content-Type"]; typed && !w.x.OneWay() {
		w.WriteHeader(http.StatusOK)
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	return io.CopyBuffer(onlyWriter{w}, body, *buffer)
}

// onlyWriter hides ReadFrom from [io.CopyBuffer].
type onlyWriter struct{ w *exchangeWriter }

// Write implements [io.Writer].
func (o onlyWriter) Write(p []byte) (int, error) { return o.w.Write(p) }

// Count adds what the frames of the exchange take on the wire to a counter
// ([streamer.Exchange.Count]).
func (w *exchangeWriter) Count(to *streamer.WireBytes) { w.x.Count(to) }

// Flush sends what is buffered; see [http.Flusher].
func (w *exchangeWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush with an error; see [http.ResponseController].
func (w *exchangeWriter) FlushError() error {
	if w.x.OneWay() {
		return nil
	}
	w.WriteHeader(http.StatusOK)
	if err := w.begin(); err != nil {
		return err
	}
	return w.reply.Flush()
}

// EnableFullDuplex does nothing: the request can always be read while the reply is written.
func (w *exchangeWriter) EnableFullDuplex() error { return nil }

// begin sends the head and what was buffered.
func (w *exchangeWriter) begin() error {
	if w.begun {
		return w.err
	}
	w.begun = true
	start := w.start()
	if w.reply, w.err = w.x.Respond(w.ctx, w.final(start), w.announced); w.err == nil && len(start) > 0 {
		_, w.err = w.reply.Write(start)
	}
	return w.err
}

// finish ends the reply; one that its server did not end, or that is shorter than announced, is cut
// short, and the peer is told.
func (w *exchangeWriter) finish(ended bool) error {
	if ended && w.status == 0 && !w.x.OneWay() {
		w.fix(http.StatusOK, true)
	}
	switch {
	case w.x.OneWay() || w.err != nil:
		return w.err
	case w.begun && ended && !w.isShort():
		return w.reply.Close()
	case w.begun:
		w.reply.Abort(http.ErrAbortHandler)
		return nil
	case !ended || w.isShort():
		return nil // the stream tells the peer that the exchange failed
	}
	m := wholes.Get().(*streamer.Message)
	body := m.Body.(*bytes.Reader)
	body.Reset(w.start())
	m.Head = w.final(w.start())
	err := w.x.Reply(w.ctx, m)
	body.Reset(nil)
	m.Head = nil
	wholes.Put(m)
	starts.Put(w.kept)
	w.kept = nil
	return err
}

// end ends the reply of a service that has returned, or panicked. After a panic the reply ends
// there, as with net/http, and the cause is logged as net/http would log it.
func (w *exchangeWriter) end(to *slog.Logger, path string, ended bool, panicked any) {
	if err, _ := panicked.(error); panicked != nil && !errors.Is(err, http.ErrAbortHandler) {
		to.Error("service panicked", "path", path, "panic", panicked)
	}
	if _, declared := w.header["Trailer"]; declared {
		to.Debug("trailers not sent, as streams carry none", "path", path)
	}
	if err := w.finish(ended); err != nil {
		to.Debug("reply not sent", "err", err)
	}
}
