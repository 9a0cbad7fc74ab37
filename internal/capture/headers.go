package capture

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// contexts hold what applies to all streams of a session: its unchanging headers
// (docs/negotiation.md, section 3.2), and its service. Headers need no further check: bodies name
// the blocks by their digests.
type contexts struct {
	store  *storeReader                 // nil: none
	agreed map[[16]byte]*agreement      // from the capture
	order  [][16]byte                   // the sessions in agreed
	stored map[[16]byte]agreement       // from the contexts of the store
	common map[string]*negotiate.Common // keys of fragments that offers in the capture have, by scope

	restorer *unchanging.Restorer
}

// agreement is what is known of a session.
type agreement struct {
	headers []string
	service Endpoint
	common  *negotiate.Common // nil: none is known
}

func newContexts(store *storeReader) contexts {
	c := contexts{store: store, agreed: map[[16]byte]*agreement{}, stored: map[[16]byte]agreement{},
		common: map[string]*negotiate.Common{}}
	cfg := unchanging.RestorerConfig{Common: c.commonOf}
	if store != nil {
		cfg.Store = store
	}
	c.restorer = unchanging.NewRestorer(cfg)
	return c
}

// seen returns the entry for what the capture shows of a session.
func (c *contexts) seen(session [16]byte) *agreement {
	if c.agreed[session] == nil {
		c.agreed[session] = &agreement{}
		if c.order = append(c.order, session); len(c.order) > maxSessions {
			delete(c.agreed, c.order[0])
			c.order = c.order[1:]
		}
	}
	return c.agreed[session]
}

// kept returns what the store has of a session.
func (c *contexts) kept(ctx context.Context, session [16]byte) agreement {
	if _, looked := c.stored[session]; !looked && c.store != nil {
		if len(c.stored) >= maxSessions {
			clear(c.stored)
		}
		c.stored[session] = agreement{}
		uri := ctxstore.SessionURI(session)
		if entry, err := c.store.Get(ctx, uri); err == nil { // otherwise [storeReader] remembers why
			facts, err := negotiate.ParseFacts(entry.Value)
			c.store.note(ctx, uri, err)
			if err == nil {
				c.stored[session] = agreement{facts.Headers, Endpoint{facts.Origin, facts.Path}, facts.Common}
			}
		}
	}
	return c.stored[session]
}

// headers returns those of a session, as far as they are known.
func (c *contexts) headers(ctx context.Context, session [16]byte) (blocks []string) {
	if seen := c.agreed[session]; seen != nil {
		blocks = seen.headers
	}
	return slices.Concat(blocks, c.kept(ctx, session).headers)
}

// fetch adds a header of a session that was agreed on in mid-session, by its name: the common store
// has it, or an error says why not.
func (c *contexts) fetch(ctx context.Context, session [16]byte, name string) error {
	common := c.kept(ctx, session).common
	if seen := c.agreed[session]; seen != nil && seen.common != nil {
		common = seen.common
	}
	if common == nil {
		return unchanging.ErrNoStore
	}
	text, err := c.restorer.Named(ctx, common, name)
	if err != nil {
		return err
	}
	seen := c.seen(session)
	seen.headers = append(slices.Clip(seen.headers), text)
	return nil
}

// putHeadersBack makes a message of a stream whole: it puts back the headers that its session
// agreed to take out.
func (r *Reader) putHeadersBack(d *Decoded) {
	if !d.inForm || d.State == Undecodable || d.content.Len() == 0 {
		return
	}
	blocks := r.contexts.headers(r.shapes.ctx, d.Session)
	name, err := lacksHeader(blocks, d.content.Reader())
	var unread error
	for err == nil && name != "" && name != absent {
		if unread = r.contexts.fetch(r.shapes.ctx, d.Session, name); unread != nil {
			break
		}
		blocks = r.contexts.headers(r.shapes.ctx, d.Session)
		name, err = lacksHeader(blocks, d.content.Reader())
	}
	switch {
	case err != nil:
	case name == absent:
		return
	case name != "":
		d.LacksContext = ctxstore.SessionURI(d.Session)
		err = fmt.Errorf("the unchanging header %s was taken out of it, "+
			"and neither capture nor store has the context of its session", name)
	default:
		whole := r.bodies.Body()
		_, err = io.Copy(whole, unchanging.Reader(blocks, d.content.Reader()))
		d.content.Free()
		d.content = whole
	}
	if err != nil && d.Whole() {
		d.State, d.Why = Undecodable, err.Error()
		if d.LacksContext != "" {
			d.couldNotRead(cmp.Or(r.store.failure(d.LacksContext), failureOf(unread)))
		}
	}
	if d.LacksContext != "" {
		start, _ := d.content.Start()
		seen := soap.Recognize(start)
		d.Version, d.Operation = seen.Version, seen.Operation
		d.content.Free()
	}
}

// absent is the result of [lacksHeader] for a body in which nothing was taken out.
const absent = "-"

// lacksHeader finds a reference in a body to a block that is none of these, and returns its name;
// empty if all are there, [absent] if nothing was taken out.
func lacksHeader(blocks []string, body io.Reader) (string, error) {
	const chunk, overlap = 64 << 10, 256
	buf := make([]byte, 0, chunk+overlap)
	found := absent
	for {
		n, err := io.ReadFull(body, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if bytes.Contains(buf, []byte(unchanging.Mark)) {
			if found = unchanging.Lacks(blocks, buf); found != "" {
				return found, nil
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return found, nil
		}
		if err != nil {
			return "", err
		}
		buf = buf[:copy(buf, buf[len(buf)-overlap:])]
	}
}
