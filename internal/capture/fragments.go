package capture

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

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

// putFragmentsBack makes a message of plain SOAP whole: it puts back what it refers to in a context
// store.
func (r *Reader) putFragmentsBack(d *Decoded) {
	if d.content == nil || d.State != Unchecked {
		return
	}
	start, err := d.content.Start()
	if err != nil || !unchanging.Refers(start) {
		return
	}
	r.need()
	by, fragments, err := r.contexts.restorer.Restore(r.shapes.ctx, start)
	var lost *unchanging.Unrestored
	if errors.As(err, &lost) {
		d.LacksContext = cmp.Or(lost.URI, lost.Reference)
		seen := soap.Recognize(start)
		d.Version, d.Operation = seen.Version, seen.Operation
		d.State, d.Why = Undecodable, "a fragment that it refers to is not put back: "+lost.Err.Error()
		d.couldNotRead(failureOf(lost.Err))
		d.content.Free()
		return
	}
	if fragments == 0 {
		return
	}
	rest := d.content.Reader()
	whole := r.bodies.Body()
	_, err = io.CopyN(io.Discard, rest, int64(len(start)))
	if err == nil {
		_, err = whole.Write(by)
	}
	if err == nil {
		_, err = io.Copy(whole, rest)
	}
	if err != nil {
		d.State, d.Why = Undecodable, err.Error()
	}
	d.content.Free()
	d.content = whole
}
