package capture

import (
	"bytes"
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// contexts tell which unchanging headers sessions have (docs/negotiation.md, section 3.2).
type contexts struct {
	store ctxstore.Store
	known map[[16]byte][]string // an entry without headers: there are none
}

// note takes what the hellos of a stream tell: one whose token is all zero was negotiated by
// nobody.
func (c *contexts) note(both [2]*direction) {
	for _, d := range both {
		if h := d.hello; h != nil && !h.Responder && string(h.Token) == string(make([]byte, frame.TokenLen)) {
			c.known[d.origin.Session] = nil
		}
	}
}

// headers gives those of a session; known is false where nothing tells.
func (c *contexts) headers(ctx context.Context, session [16]byte) (blocks []string, known bool) {
	if blocks, known = c.known[session]; known || c.store == nil {
		return blocks, known
	}
	entry, err := c.store.Get(ctx, ctxstore.SessionURI(session))
	if err != nil {
		return nil, false
	}
	facts, err := negotiate.ParseFacts(entry.Value)
	if err != nil {
		return nil, false
	}
	c.known[session] = facts.Headers
	return facts.Headers, true
}

// learn takes what the negotiations of a capture agreed on.
func (c *contexts) learn(messages []*Decoded) {
	type exchange struct {
		flow int
		id   uint64
	}
	offers := map[exchange]*negotiate.Offer{}
	for _, m := range messages {
		if !m.negotiation() || !m.Whole() {
			continue
		}
		at := exchange{m.flow, m.Exchange}
		if !m.Reply {
			if o, _, err := negotiate.ParseOffer(m.Body); err == nil {
				offers[at] = o
			}
			continue
		}
		a, err := negotiate.ParseAnswer(m.Body)
		if err != nil || offers[at] == nil {
			continue
		}
		var blocks []string
		if o := offers[at]; a.HeadersKept > 0 && a.HeadersKept == len(o.Headers) {
			blocks = o.Headers
		}
		c.known[a.Session] = blocks
	}
}

// putHeadersBack makes the messages of streams whole: what their sessions agreed to take out of
// them stands in them again. It is for the end, when all negotiations are read.
func (dec *decoder) putHeadersBack(ctx context.Context) {
	dec.contexts.learn(dec.result.Messages)
	for _, m := range dec.result.Messages {
		if m.HHFR && m.State != Undecodable && bytes.Contains(m.Body, []byte(negotiate.HeaderMark)) {
			dec.putBack(ctx, m)
		}
	}
}

var errNoContext = errors.New("unchanging headers may have been taken out of it, " +
	"and neither capture nor store has the context of its session")

func (dec *decoder) putBack(ctx context.Context, m *Decoded) {
	blocks, known := dec.contexts.headers(ctx, m.Session)
	whole := m.Whole()
	var err error
	switch {
	case len(blocks) > 0:
		m.Body, err = negotiate.PutBackHeaders(blocks, m.Body)
	case !known && negotiate.LacksHeaders(m.Body):
		m.LacksContext, err = ctxstore.SessionURI(m.Session), errNoContext
		m.Body = nil
	}
	if err != nil && whole {
		m.State, m.Why = Undecodable, err.Error()
		return
	}
	if known {
		m.recognize()
	}
}
