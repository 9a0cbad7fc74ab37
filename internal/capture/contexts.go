package capture

import (
	"context"
	"slices"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
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

// commonOf returns the key of fragments: from the capture, or by the contexts of the store.
func (c *contexts) commonOf(ctx context.Context, scope string) (*negotiate.Common, error) {
	if seen := c.common[scope]; seen != nil {
		return seen, nil
	}
	if c.store == nil {
		return nil, unchanging.ErrNoStore
	}
	return unchanging.CommonIn(c.store)(ctx, scope)
}

// sawCommon records the key of an offer.
func (c *contexts) sawCommon(common *negotiate.Common) {
	if common == nil {
		return
	}
	if len(c.common) >= maxSessions {
		clear(c.common)
	}
	c.common[common.Scope()], c.common[common.Handle()] = common, common
}

// offered returns the unchanging headers of an offer, as far as they can be found.
func (c *contexts) offered(ctx context.Context, o *negotiate.Offer) []string {
	if len(o.References) == 0 || o.Common == nil {
		return o.Headers
	}
	texts, err := c.restorer.Texts(ctx, o.Common, o.References)
	if err != nil {
		return o.Headers
	}
	return slices.Concat(o.Headers, texts)
}
