package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// waitResult is the outcome of waiting for a part of a message.
type waitResult uint8

const (
	stateWhole  waitResult = iota
	stateFull              // longer than the limit
	statePaused            // nothing arrived for too long
	stateEnded             // the connection ended, or the wait was canceled
	stateOdd               // not valid HTTP
)

// readHead waits for a whole HTTP head and leaves it in the source; its length is n. The head is
// valid until the next wait. idle > 0 bounds the wait for its first byte, pause the wait for each
// further one.
func readHead(
	ctx context.Context, in *sock.Source, idle, pause time.Duration, reply bool,
) (h http1.Head, n int, st waitResult, err error) {
	data, err := in.Wait(ctx, 0, idle)
	for {
		if len(data) == 0 {
			if errors.Is(err, sock.ErrPaused) {
				return h, 0, statePaused, err
			}
			return h, 0, stateEnded, err
		}
		var bad error
		h, n, bad = http1.ParseHead(data, maxHeadOctets)
		switch {
		case bad == nil && h.IsReply() == reply:
			return h, n, stateWhole, nil
		case bad == nil, !errors.Is(bad, http1.ErrIncomplete):
			return h, 0, stateOdd, bad
		case errors.Is(err, sock.ErrPaused):
			return h, 0, statePaused, err
		case err != nil:
			return h, 0, stateEnded, err
		}
		data, err = in.Wait(ctx, len(data), pause)
	}
}

// gathered is as much of a body as gather waited for; its bytes are in the source still.
type gathered struct {
	body   *http1.Body
	octets int // raw bytes seen
	chunks bool
	start  []byte // of the entity in them, up to maxStart
	size   string // of the chunks of a body that was not gathered whole, if they have one
	raw    []byte // all of them; valid as long as what the source returned
	parts  []http1.FramingPart
}

// gather waits for a whole chunked body after a head of skip bytes, if its shape is worth it. A
// body that is no XML, or pauses, is passed on as it arrives, and so is one longer than MaxBuffer
// whose chunks have one size so far. Others of that length are gathered, too, while few others are.
// The caller calls release when it no longer uses what was gathered.
func (p *Proxy) gather(
	ctx context.Context, in *sock.Source, skip int, h *http1.Head, f http1.Framing,
) (g gathered, st waitResult, release func()) {
	release = func() {}
	g, st = gather(ctx, in, skip, f, p.cfg.MaxBuffer, -1)
	if (st == statePaused || st == stateFull) && !isXML(h, g.start) {
		return g, st, release
	}
	if st == statePaused {
		g, st = gather(ctx, in, skip, f, p.cfg.MaxBuffer, p.cfg.Gather)
	}
	if st == stateFull {
		parts, _ := g.body.Framing()
		g.size = http1.UniformSize(parts)
	}
	if st != stateFull || g.size != "" || p.cfg.MaxBuffer >= maxWhole || !p.long.enter() {
		return g, st, release
	}
	over := p.cfg.OnLong()
	in.Reserve(maxHeadOctets + maxWhole + sock.MaxSpace)
	g, st = gather(ctx, in, skip, f, maxWhole, p.cfg.Gather)
	return g, st, sync.OnceFunc(func() {
		over()
		p.long.leave()
	})
}

// isXML reports whether a body is XML, or may be, by its head and its beginning.
func isXML(h *http1.Head, entity []byte) bool {
	if media, ok := h.Get("Content-Type"); ok {
		media = bytes.ToLower(media)
		return bytes.Contains(media, []byte("xml")) || bytes.HasPrefix(media, []byte("multipart/related"))
	}
	return bytes.HasPrefix(bytes.TrimLeft(entity, "\xEF\xBB\xBF \t\r\n"), []byte{'<'})
}

// gather waits for a whole body after a head of skip bytes, but for no more than limit bytes, and
// not longer than pause from one byte to the next.
func gather(
	ctx context.Context, in *sock.Source, skip int, f http1.Framing, limit int, pause time.Duration,
) (g gathered, st waitResult) {
	g.body, g.chunks = http1.NewBody(f), f.Kind == http1.Chunked
	g.body.Record()
	for !g.body.Done() {
		data, err := in.Wait(ctx, skip+g.octets, pause)
		if bad := g.feed(data[min(skip, len(data)):]); bad != nil {
			return g, stateOdd
		}
		switch {
		case g.body.Done():
		case errors.Is(err, sock.ErrPaused):
			return g, statePaused
		case err != nil:
			return g, stateEnded
		case g.octets >= limit:
			return g, stateFull
		}
	}
	g.raw = in.Peek()[skip : skip+g.octets]
	if !g.chunks {
		g.start = g.raw
		return g, stateWhole
	}
	var all bool
	if g.parts, all = g.body.Framing(); !all {
		return g, stateFull
	}
	return g, stateWhole
}

// feed passes to the body what of data it has not seen.
func (g *gathered) feed(data []byte) error {
	for len(data) > g.octets && !g.body.Done() {
		entity, n, err := g.body.Write(data[g.octets:])
		if g.octets += n; err != nil {
			return err
		}
		if g.chunks {
			g.start = append(g.start, entity[:min(len(entity), maxStart-len(g.start))]...)
		}
	}
	return nil
}

// line is the framing of a chunked body that was gathered whole.
func (g *gathered) line() string {
	_, size := g.body.Sizes()
	return http1.ChunkingLine(size, g.parts)
}

// entity is that of a body that was gathered whole, in pieces of what the source returned.
func (g *gathered) entity() [][]byte {
	if !g.chunks {
		return [][]byte{g.raw}
	}
	return http1.EntityOf(g.raw, g.parts)
}

// joined is all of an entity; one in one piece is not copied.
func joined(entity [][]byte) []byte {
	if len(entity) == 1 {
		return entity[0]
	}
	return bytes.Join(entity, nil)
}

// sizeOf is the number of bytes of an entity.
func sizeOf(entity [][]byte) (n int) {
	for _, piece := range entity {
		n += len(piece)
	}
	return n
}

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
	// pause is how long it may pause until what came is sent; 0: at once, atLeisure: as long as the
	// writer has it wait.
	pause time.Duration
}

const atLeisure = -1

// arriving is the body of a message with the head h that is sent as it comes, which is what line
// says. What is no XML is sent at once, since somebody may wait for it. XML may wait a moment for
// its rest, since it travels best in one part; not longer than Gather, where framing that somebody
// may wait for is held back.
func (p *Proxy) arriving(h *http1.Head, f http1.Framing, line, size string) arriving {
	a := arriving{body: http1.NewBody(f), size: size}
	switch {
	case size != "":
		a.pause = p.cfg.Gather
	case line != restLine && isXML(h, nil):
		a.pause = atLeisure
	}
	return a
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
		switch {
		case bad != nil:
			return errOdd
		case a.pause == 0 && in.Drained() && (b == nil || !b.Done()):
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

// copyFramed writes a message whose chunked body is framed anew, as it was received. The error is
// that of copyMessage, or errLongChunk.
func copyFramed(to io.Writer, c *controlMessage, m *streamer.Message, limit int) error {
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
