package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// contexts tell which unchanging headers sessions have (docs/negotiation.md, section 3.2). What
// they tell needs no check: bodies name the blocks by their digests.
type contexts struct {
	store  ctxstore.Store
	agreed map[[16]byte][]string // by the negotiations of the capture
	stored map[[16]byte][]string // by the contexts of the store
}

// headers gives those of a session, as far as they are known.
func (c *contexts) headers(ctx context.Context, session [16]byte) (blocks []string) {
	if _, looked := c.stored[session]; !looked && c.store != nil {
		c.stored[session] = nil
		if entry, err := c.store.Get(ctx, ctxstore.SessionURI(session)); err == nil {
			if facts, err := negotiate.ParseFacts(entry.Value); err == nil {
				c.stored[session] = facts.Headers
			}
		}
	}
	return slices.Concat(c.agreed[session], c.stored[session])
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
		if o := offers[at]; a.HeadersKept > 0 && a.HeadersKept == len(o.Headers) {
			c.agreed[a.Session] = o.Headers
		}
	}
}

// putHeadersBack makes the messages of streams whole: what their sessions agreed to take out of
// them stands in them again. It is for the end, when all negotiations are read.
func (dec *decoder) putHeadersBack(ctx context.Context) {
	dec.contexts.learn(dec.result.Messages)
	for _, m := range dec.result.Messages {
		if m.inForm && m.State != Undecodable && bytes.Contains(m.Body, []byte(negotiate.HeaderMark)) {
			dec.putBack(ctx, m)
		}
	}
}

func (dec *decoder) putBack(ctx context.Context, m *Decoded) {
	blocks, whole := dec.contexts.headers(ctx, m.Session), m.Whole()
	var err error
	if name := negotiate.LacksHeader(blocks, m.Body); name != "" {
		m.LacksContext, m.Body = ctxstore.SessionURI(m.Session), nil
		err = fmt.Errorf("the unchanging header %s was taken out of it, "+
			"and neither capture nor store has the context of its session", name)
	} else {
		m.Body, err = negotiate.PutBackHeaders(blocks, m.Body)
	}
	if err != nil && whole {
		m.State, m.Why = Undecodable, err.Error()
		return
	}
	m.recognize()
}
