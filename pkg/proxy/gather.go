package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
)

// state is what became of waiting for a part of a message.
type state uint8

const (
	stateWhole  state = iota
	stateFull         // more than is held
	statePaused       // nothing came for too long
	stateEnded        // the connection ended, or waiting was given up
	stateOdd          // not as HTTP has it
)

// readHead waits for a whole HTTP head and leaves it in the inlet; n octets belong to it. idle > 0 bounds the waiting for its first octet, pause that for
// each further one.
func readHead(ctx context.Context, in *inlet, idle, pause time.Duration, reply bool) (h http1.Head, n int, st state, err error) {
	data, err := in.wait(ctx, 0, idle)
	for {
		if len(data) == 0 {
			if errors.Is(err, errPaused) {
				return h, 0, statePaused, err
			}
			return h, 0, stateEnded, err
		}
		var bad error
		h, n, bad = http1.ParseHead(data, maxHeadOctets)
		switch {
		case bad == nil && h.IsReply() == reply:
			h, _, _ = http1.ParseHead(bytes.Clone(data[:n]), maxHeadOctets)
			return h, n, stateWhole, nil
		case bad == nil, !errors.Is(bad, http1.ErrIncomplete):
			return h, 0, stateOdd, bad
		case errors.Is(err, errPaused):
			return h, 0, statePaused, err
		case err != nil:
			return h, 0, stateEnded, err
		}
		data, err = in.wait(ctx, len(data), pause)
	}
}

// gathered is as much of a body as was waited for; its octets lie in the inlet still.
type gathered struct {
	body   *http1.Body
	octets int    // raw octets seen
	chunks bool   // the entity is not the raw octets
	entity []byte // of them
	raw    []byte
	parts  []http1.FramingPart
}

// gather waits for a whole body behind the head of skip octets, beyond MaxBuffer, too, while few
// others are waited for so. goesOn: one that says how long it is and is longer than MaxBuffer is not
// waited for, since it can go as it comes. The caller has release called when it has done with what
// was gathered.
func (p *Proxy) gather(
	ctx context.Context, in *inlet, skip int, f http1.Framing, goesOn bool,
) (g gathered, st state, release func(), err error) {
	release = func() {}
	g, st, err = gather(ctx, in, skip, f, p.cfg.MaxBuffer, p.cfg.Pause)
	needless := f.Kind == http1.Length && (goesOn || f.Length > maxWhole) || p.cfg.MaxBuffer >= maxWhole
	if st != stateFull || needless || !p.long.enter(maxLong) {
		return g, st, release, err
	}
	in.allow(maxWhole + 2*maxHeadOctets)
	g, st, err = gather(ctx, in, skip, f, maxWhole, p.cfg.Pause)
	return g, st, sync.OnceFunc(func() {
		in.allow(p.cfg.MaxBuffer + 2*maxHeadOctets)
		p.long.leave()
	}), err
}

// gather waits for a whole body behind the head of skip octets, but for no more than limit octets, and not longer than pause from one octet to the next.
func gather(ctx context.Context, in *inlet, skip int, f http1.Framing, limit int, pause time.Duration) (g gathered, st state, err error) {
	g.body, g.chunks = http1.NewBody(f), f.Kind == http1.Chunked
	g.body.Record()
	var data []byte
	for !g.body.Done() {
		data, err = in.wait(ctx, skip+g.octets, pause)
		if bad := g.feed(data[min(skip, len(data)):]); bad != nil {
			return g, stateOdd, bad
		}
		switch {
		case g.body.Done():
		case errors.Is(err, errPaused):
			return g, statePaused, err
		case errors.Is(err, io.EOF) && f.Kind == http1.UntilClose:
			if err := g.body.Close(); err != nil {
				return g, stateEnded, err
			}
		case err != nil:
			return g, stateEnded, err
		case g.octets >= limit:
			return g, stateFull, nil
		}
	}
	var all bool
	g.raw = bytes.Clone(data[min(skip, len(data)):min(skip+g.octets, len(data))])
	if !g.chunks {
		g.entity = g.raw
		return g, stateWhole, nil
	}
	if g.parts, all = g.body.Framing(); !all {
		return g, stateFull, nil
	}
	return g, stateWhole, nil
}

// feed shows the body what of data it has not seen.
func (g *gathered) feed(data []byte) error {
	for len(data) > g.octets && !g.body.Done() {
		entity, n, err := g.body.Write(data[g.octets:])
		if g.octets += n; err != nil {
			return err
		}
		if g.chunks {
			g.entity = append(g.entity, entity...)
		}
	}
	return nil
}

// pass shows a body octets that are passed on as they are and says how many of them are its own.
func pass(b *http1.Body, data []byte) (n int, err error) {
	for n < len(data) && !b.Done() {
		_, k, err := b.Write(data[n:])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// framingOf is the framing line of a body that was gathered whole.
func (g *gathered) line(f http1.Framing) []byte { return framingLine(f, g.raw, g.entity, g.parts) }
