package proxy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/soap"
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

// gather waits for a whole body after a head of skip bytes, if its shape is worth it. A body that
// is no XML, or pauses, is passed on as it arrives. So is one of a known length above inlineBody,
// whose beginning need not wait for its end, and one longer than MaxBuffer whose chunks have one
// size so far. Others are gathered up to maxWhole, if what all connections hold so leaves room. The
// caller calls release when it no longer uses what was gathered.
func (p *core) gather(
	ctx context.Context, in *sock.Source, skip int, h *http1.Head, f http1.Framing,
) (g gathered, st waitResult, release func()) {
	release = func() {}
	pause := p.cfg.Gather
	switch f.Kind {
	case http1.Chunked:
	case http1.Length:
		if pause = BodyPause; f.Length > inlineBody {
			return g, stateFull, release
		}
	default:
		return g, stateFull, release
	}
	limit := min(p.cfg.MaxBuffer, inlineBody)
	g, st = gather(ctx, in, skip, f, limit, -1)
	if (st == statePaused || st == stateFull) && !isXML(h, g.start) {
		return g, st, release
	}
	if st == statePaused {
		netconn.Acknowledge(in.Conn) // the peer's kernel may hold the rest back until then
		g, st = gather(ctx, in, skip, f, limit, pause)
	}
	if st == stateFull && f.Kind == http1.Chunked {
		return p.gatherMore(ctx, in, skip, f, g, limit)
	}
	return g, st, release
}

// gatherMore is gather for a chunked body that is longer than limit bytes.
func (p *core) gatherMore(
	ctx context.Context, in *sock.Source, skip int, f http1.Framing, g gathered, limit int,
) (_ gathered, st waitResult, release func()) {
	held := 0
	for st = stateFull; st == stateFull; {
		parts, _ := g.body.Framing()
		g.size = http1.UniformSize(parts)
		next := min(2*limit, maxWhole)
		if limit < p.cfg.MaxBuffer {
			next = min(4*limit, p.cfg.MaxBuffer)
		}
		if next <= limit || g.size != "" && limit >= p.cfg.MaxBuffer || !p.held.take(next-held) {
			break
		}
		held, limit = next, next
		in.Reserve(skip + limit + sock.MaxSpace)
		g, st = gather(ctx, in, skip, f, limit, p.cfg.Gather)
	}
	return g, st, sync.OnceFunc(func() { p.held.give(held) })
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
		data, err := in.Wait(ctx, skip+g.octets, g.patience(pause))
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
		return g, stateWhole
	}
	var all bool
	if g.parts, all = g.body.Framing(); !all {
		return g, stateFull
	}
	return g, stateWhole
}

// patience is how long what was seen may pause, where pause is that of any such body: BodyPause, if
// chunks have a SOAP envelope, since nobody acts on a part of one, and a busy writer may come late.
func (g *gathered) patience(pause time.Duration) time.Duration {
	if pause > 0 && pause < BodyPause && g.chunks && soap.Recognize(g.start).Version != 0 {
		return BodyPause
	}
	return pause
}

// feed passes to the body what of data it has not seen.
func (g *gathered) feed(data []byte) error {
	for len(data) > g.octets && !g.body.Done() {
		entity, n, err := g.body.Write(data[g.octets:])
		if g.octets += n; err != nil {
			return err
		}
		g.start = append(g.start, entity[:min(len(entity), maxStart-len(g.start))]...)
	}
	return nil
}

// line is the framing of a body that was gathered whole.
func (g *gathered) line() string {
	if !g.chunks {
		return "\n"
	}
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

// isLast reports whether the connection is closed after this message (RFC 9112, section 9.6).
func isLast(h *http1.Head) bool {
	connection := h.Tokens("Connection")
	return slices.Contains(connection, "close") || string(h.Version()) == "HTTP/1.0" &&
		!slices.Contains(connection, "keep-alive")
}
