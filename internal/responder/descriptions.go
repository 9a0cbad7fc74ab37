package responder

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
)

// descriptions are those of services and of messages. All methods are safe for concurrent use.
type descriptions struct{ cfg *Config }

// describe takes the descriptions of an offer, as far as they are understood, and adds our own
// description of replies.
func (ds *descriptions) describe(
	ctx context.Context, o *negotiate.Offer, a *negotiate.Answer, facts *negotiate.Facts,
) (err error) {
	if a.Request, err = ds.take(ctx, "RequestDescription", o.Request, a, facts); err != nil {
		return err
	}
	var own *schema.Schema
	if ds.cfg.ReplySchema != nil {
		own = ds.cfg.ReplySchema(unescaped(facts.Path))
	}
	if own == nil {
		a.Reply, err = ds.take(ctx, "ReplyDescription", o.Reply, a, facts)
	} else {
		a.Reply = negotiate.Describe(own)
		if o.Reply != nil {
			if uri, err := o.Reply.URI(); err == nil && uri == own.URI() {
				a.Reply = &negotiate.Description{Fingerprint: uri}
			}
		}
		err = coders.KeepSchema(ctx, ds.cfg.Store, own, ds.cfg.archived(a.Lifetime))
	}
	facts.RequestDescription, facts.ReplyDescription = a.Request.Name(), a.Reply.Name()
	return err
}

// take stores what the offer describes a direction by, and confirms it by its name. It
// refuses what it does not understand.
func (ds *descriptions) take(
	ctx context.Context, item string, d *negotiate.Description, a *negotiate.Answer, facts *negotiate.Facts,
) (*negotiate.Description, error) {
	if d == nil {
		return nil, nil
	}
	refuse := func(why string) (*negotiate.Description, error) {
		a.Refused = append(a.Refused, negotiate.Declined{Item: item, Why: why})
		return nil, nil
	}
	switch {
	case d.Schema != "":
		s, err := schema.Parse([]byte(d.Schema))
		if err != nil {
			return refuse(err.Error())
		}
		if err := coders.KeepSchema(ctx, ds.cfg.Store, s, ds.cfg.archived(a.Lifetime)); err != nil {
			return nil, err
		}
		return &negotiate.Description{Fingerprint: s.URI()}, nil
	case d.Shape != nil:
		s, err := shape.Parse(d.Shape)
		if err != nil {
			return refuse(err.Error())
		}
		fp, err := ctxstore.Shapes{Store: ds.cfg.Store}.Put(ctx, s.Octets())
		if err != nil {
			return nil, err
		}
		both(fp, a, facts)
		return &negotiate.Description{Fingerprint: s.Fingerprint().URI()}, nil
	}
	if c := ds.contract(facts.Path, true); c != nil && c.URI() == d.Fingerprint {
		return d, nil
	}
	if _, err := ds.cfg.Store.Get(ctx, d.Fingerprint); errors.Is(err, ctxstore.NotFound) {
		return refuse("not known here")
	} else if err != nil {
		return nil, err
	}
	if fp, ok := ctxstore.ParseShapeURI(d.Fingerprint); ok {
		both(fp, a, facts)
	}
	return &negotiate.Description{Fingerprint: d.Fingerprint}, nil
}

// replySchema returns the schema that describes the replies of a session; nil if none does, or a
// shape does.
func (ds *descriptions) replySchema(ctx context.Context, facts *negotiate.Facts) *schema.Schema {
	if facts.ReplyDescription != "" {
		if c := ds.contract(facts.Path, true); c != nil && c.URI() == facts.ReplyDescription {
			return nil // it says more
		}
	}
	if ds.cfg.ReplySchema != nil {
		if own := ds.cfg.ReplySchema(unescaped(facts.Path)); own != nil {
			return own
		}
	}
	if !strings.HasPrefix(facts.ReplyDescription, schema.URIPrefix) {
		return nil
	}
	entry, err := ds.cfg.Store.Get(ctx, facts.ReplyDescription)
	if err != nil {
		ds.cfg.Log.Warn("schema of replies not found", "schema", facts.ReplyDescription, "err", err)
		return nil
	}
	s, err := schema.Parse(entry.Value)
	if err != nil {
		ds.cfg.Log.Warn("schema of replies not read", "schema", facts.ReplyDescription, "err", err)
		return nil
	}
	return s
}

// contract returns the description of the service at a path as in facts; nil if there is none.
func (ds *descriptions) contract(path string, named bool) *typed.Contract {
	if ds.cfg.Contract == nil {
		return nil
	}
	return ds.cfg.Contract(unescaped(path), named)
}

// isDescribed reports whether a session agreed on a description of the service.
func isDescribed(c *typed.Contract, facts *negotiate.Facts) bool {
	return c != nil && (facts.RequestDescription != "" || facts.ReplyDescription != "") &&
		(facts.RequestDescription == c.URI() || facts.ReplyDescription == c.URI())
}

// named returns the description of the service at a path if it is the one that a hello or a request
// names; nil if not.
func (ds *descriptions) named(hint []byte, path string) *typed.Contract {
	if len(hint) == 0 {
		return nil
	}
	if c := ds.contract(path, true); c != nil && bytes.Equal(c.Hint(), hint) {
		return c
	}
	return nil
}

// both records that both ends have a shape.
func both(fp [32]byte, a *negotiate.Answer, facts *negotiate.Facts) {
	if !slices.Contains(a.Shapes, fp) && len(a.Shapes) < negotiate.MaxShapes {
		a.Shapes = append(a.Shapes, fp)
	}
	if !slices.Contains(facts.PeerShapes, fp) && len(facts.PeerShapes) < negotiate.MaxShapes {
		facts.PeerShapes = append(facts.PeerShapes[:len(facts.PeerShapes):len(facts.PeerShapes)], fp)
	}
}
