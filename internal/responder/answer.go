package responder

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// answer selects from an offer made by a request, and stores the session. Its error is refusedItems
// where it may be sent to the peer.
func (r *Responder) answer(ctx context.Context, req *http.Request, o *negotiate.Offer) (*negotiate.Answer, error) {
	if err := r.admit(req); err != nil {
		return nil, err
	}
	path := req.URL.EscapedPath()
	a := &negotiate.Answer{
		Session:     negotiate.NewSessionID(),
		Lifetime:    min(cmp.Or(o.Lifetime, negotiate.DefaultLifetime), r.cfg.MaxLifetime),
		RequestHead: negotiate.DefaultRequestFields,
		ReplyHead:   negotiate.DefaultReplyFields,
		Ignored:     o.Ignored,
	}
	rand.Read(a.Token[:])
	r.agreeCommon(o, a)
	if err := r.choose(o, a); err != nil {
		return nil, err
	}
	var err error
	if a.Assurance != negotiate.AtMostOnce {
		a.Sequence = o.Sequence
		if a.SequenceKnown, err = r.knows(ctx, o.Sequence); err != nil {
			return nil, err
		}
	}
	if a.Shapes, err = r.common(ctx, o.Shapes); err != nil {
		return nil, err
	}
	facts := negotiate.Facts{
		Session:        a.Session,
		Scheme:         a.Scheme,
		Representation: a.Representation,
		Transport:      a.Transport,
		Assurance:      a.Assurance,
		Security:       a.Security,
		Sequence:       a.Sequence,
		Origin:         requestOrigin(req),
		Path:           path,
		Address:        a.Address,
		Expires:        r.cfg.Clock.Now().Add(a.Lifetime),
		PeerShapes:     o.Shapes,
	}
	if a.ContextStore != "" {
		facts.Common = o.Common
	}
	headers, err := r.offeredHeaders(ctx, o, a)
	if err == nil {
		err = r.takeHeaders(path, headers)
	}
	if err != nil {
		a.Refused = append(a.Refused, negotiate.Declined{Item: "UnchangingHeader", Why: err.Error()})
	} else if len(headers) > 0 {
		a.HeadersKept, facts.Headers = len(headers), headers
	}
	if err := r.describe(ctx, o, a, &facts); err != nil {
		return nil, err
	}
	gone, ok := r.registry.add(a.Session, peerOf(req))
	r.forget(ctx, gone)
	if !ok {
		return nil, negotiate.Busy
	}
	revision, err := r.keep(ctx, facts, a)
	if err != nil {
		r.registry.remove(a.Session)
		return nil, err
	}
	if !r.registry.stored(a.Session, revision) {
		r.forget(ctx, []dropped{{a.Session, revision}})
		return nil, negotiate.Busy
	}
	if a.Transport == negotiate.HTTPTransport {
		r.retire(ctx, a.Session, facts.Headers) // nobody joins it
	}
	return a, nil
}

// choose selects where the offer gives a choice. Items with nothing in common refuse the offer.
func (r *Responder) choose(o *negotiate.Offer, a *negotiate.Answer) error {
	var refused negotiate.RefusedItems
	for _, c := range []struct {
		item    string
		offered []string
		ours    func(uri string) bool
		chosen  *string
	}{
		{"Scheme", o.Schemes, func(uri string) bool { return uri == negotiate.Scheme }, &a.Scheme},
		{"Representation", o.Representations, func(uri string) bool {
			return slices.ContainsFunc(r.cfg.Representations,
				func(name string) bool { return negotiate.RepresentationURI(name) == uri })
		}, &a.Representation},
		{"Transport", o.Transports, func(uri string) bool {
			return r.address(uri) != "" || uri == negotiate.HTTPTransport && a.ContextStore != ""
		}, &a.Transport},
		{"Assurance", negotiate.OrOnly(o.Assurances, negotiate.AtMostOnce),
			func(uri string) bool { return r.assure(uri, o) == nil }, &a.Assurance},
		{"Security", negotiate.OrOnly(o.Securities, negotiate.TransportSecurity),
			func(uri string) bool { return uri == negotiate.TransportSecurity }, &a.Security},
	} {
		at := slices.IndexFunc(c.offered, c.ours)
		if at < 0 {
			why := "nothing in common"
			if c.item == "Assurance" {
				why = r.assure(o.Assurances[0], o).Error()
			}
			refused = append(refused, negotiate.Declined{Item: c.item, Why: why})
			continue
		}
		*c.chosen = c.offered[at]
	}
	if refused != nil {
		return refused
	}
	a.Address = r.address(a.Transport)
	if a.Transport == negotiate.HTTPTransport {
		a.Address, a.Representation = "-", negotiate.RepresentationURI("xml")
		if !slices.Contains(o.Representations, a.Representation) {
			return negotiate.RefusedItems{{Item: "Representation", Why: "plain SOAP is xml"}}
		}
	}
	return nil
}

// address returns where streams of a transport are accepted; empty if nowhere.
func (r *Responder) address(uri string) string {
	name, _ := strings.CutPrefix(uri, negotiate.TransportPrefix)
	return r.cfg.Addresses[name]
}

// peerOf returns the sender of a request, as sessions are counted.
func peerOf(req *http.Request) string { return accept.Peer(req.RemoteAddr) }

// requestOrigin returns the scheme and host that a request was made to, as far as it shows them;
// empty if it does not.
func requestOrigin(req *http.Request) string {
	scheme := "http"
	if req.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(scheme + "://" + req.Host)
	if err != nil || u.Host != req.Host || u.Hostname() == "" || negotiate.CheckText(req.Host) != nil {
		return ""
	}
	return negotiate.Origin(u)
}

// common returns the fingerprints whose shapes the store has, in the order of the offer.
func (r *Responder) common(ctx context.Context, offered [][32]byte) ([][32]byte, error) {
	var have [][32]byte
	seen := make(map[[32]byte]bool, len(offered))
	for _, fp := range offered {
		if seen[fp] {
			continue
		}
		seen[fp] = true
		here, err := ctxstore.Has(ctx, r.cfg.Store, ctxstore.ShapeURI(fp))
		switch {
		case here:
			have = append(have, fp)
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			r.cfg.Log.Warn("shape not looked up", "err", err)
		}
	}
	return have, nil
}

// keep writes the session's context. Until the session is joined, its context expires when it may
// no longer be joined.
func (r *Responder) keep(ctx context.Context, facts negotiate.Facts, a *negotiate.Answer) (revision uint64, err error) {
	hash := sha256.Sum256(a.Token[:])
	c := negotiate.Context{Facts: facts, TokenHash: hash[:], Lifetime: a.Lifetime}
	document, err := c.Marshal()
	if err != nil {
		return 0, err
	}
	o := ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: min(r.cfg.JoinWithin, a.Lifetime)}
	if facts.Common != nil {
		o.TTL = r.archived(a.Lifetime) // plain SOAP refers to it also if the session is not joined
	}
	if err := unchanging.KeepScope(ctx, r.cfg.Store, &facts, r.archived(a.Lifetime)); err != nil {
		return 0, err
	}
	return r.cfg.Store.Put(ctx, a.Session.URI(), document, o)
}

// takeHeaders returns the reason why the blocks are not agreed to; nil if they are.
func (r *Responder) takeHeaders(path string, blocks []string) error {
	if len(blocks) == 0 {
		return nil
	}
	if err := negotiate.CheckHeaders(blocks); err != nil || r.cfg.UnchangingHeaders == nil {
		return err
	}
	return r.cfg.UnchangingHeaders(path, blocks)
}
