package responder

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/responder/machine"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// offers answers offers. All methods are safe for concurrent use.
type offers struct {
	cfg          *Config
	sessions     *sessions
	sequences    *sequences
	descriptions *descriptions
	restorer     *unchanging.Restorer // nil: there is no common store
}

// answer selects from an offer made by a request, and stores the session. Its error is refusedItems
// where it may be sent to the peer.
func (f *offers) answer(ctx context.Context, req *http.Request, o *negotiate.Offer) (*negotiate.Answer, error) {
	if err := f.cfg.admit(req); err != nil {
		return nil, err
	}
	path := req.URL.EscapedPath()
	a := &negotiate.Answer{
		Session:     negotiate.NewSessionID(),
		Lifetime:    min(cmp.Or(o.Lifetime, negotiate.DefaultLifetime), f.cfg.MaxLifetime),
		RequestHead: negotiate.DefaultRequestFields,
		ReplyHead:   negotiate.DefaultReplyFields,
		Ignored:     o.Ignored,
	}
	rand.Read(a.Token[:])
	f.agreeCommon(o, a)
	if err := f.choose(o, a); err != nil {
		return nil, err
	}
	var err error
	if a.Assurance != negotiate.AtMostOnce {
		a.Sequence = o.Sequence
		if a.SequenceKnown, err = f.sequences.knows(ctx, o.Sequence); err != nil {
			return nil, err
		}
	}
	if a.Shapes, err = f.common(ctx, o.Shapes); err != nil {
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
		Expires:        f.cfg.Clock.Now().Add(a.Lifetime),
		PeerShapes:     o.Shapes,
	}
	if a.ContextStore != "" {
		facts.Common = o.Common
	}
	headers, err := f.offeredHeaders(ctx, o, a)
	if err == nil {
		err = f.takeHeaders(path, headers)
	}
	if err != nil {
		a.Refused = append(a.Refused, negotiate.Declined{Item: "UnchangingHeader", Why: err.Error()})
	} else if len(headers) > 0 {
		a.HeadersKept, facts.Headers = len(headers), headers
	}
	if err := f.descriptions.describe(ctx, o, a, &facts); err != nil {
		return nil, err
	}
	id := machine.ID(a.Session)
	if !f.sessions.happened(ctx, machine.Negotiated{Session: id, Peer: peerOf(req)}) {
		return nil, negotiate.Busy
	}
	revision, err := f.keep(ctx, facts, a)
	if err != nil {
		f.withdraw(ctx, a)
		return nil, err
	}
	if !f.sessions.happened(ctx, machine.Recorded{Session: id, Revision: revision}) {
		return nil, negotiate.Busy
	}
	if a.Transport == negotiate.HTTPTransport {
		f.sessions.left(ctx, a.Session, facts.Headers) // nobody joins it
	}
	return a, nil
}

// address returns where streams of a transport are accepted; empty if nowhere.
func (f *offers) address(uri string) string {
	name, _ := strings.CutPrefix(uri, negotiate.TransportPrefix)
	return f.cfg.Addresses[name]
}

// withdraw gives up the session of an answer that nobody gets.
func (f *offers) withdraw(ctx context.Context, a *negotiate.Answer) {
	f.sessions.happened(ctx, machine.Withdrawn{Session: machine.ID(a.Session)})
}

// choose selects where the offer gives a choice. Items with nothing in common refuse the offer.
func (f *offers) choose(o *negotiate.Offer, a *negotiate.Answer) error {
	var refused negotiate.RefusedItems
	for _, c := range []struct {
		item    string
		offered []string
		ours    func(uri string) bool
		chosen  *string
	}{
		{"Scheme", o.Schemes, func(uri string) bool { return uri == negotiate.Scheme }, &a.Scheme},
		{"Representation", o.Representations, func(uri string) bool {
			return slices.ContainsFunc(f.cfg.Representations,
				func(name string) bool { return negotiate.RepresentationURI(name) == uri })
		}, &a.Representation},
		{"Transport", o.Transports, func(uri string) bool {
			return f.address(uri) != "" || uri == negotiate.HTTPTransport && a.ContextStore != ""
		}, &a.Transport},
		{"Assurance", negotiate.OrOnly(o.Assurances, negotiate.AtMostOnce),
			func(uri string) bool { return f.assure(uri, o) == nil }, &a.Assurance},
		{"Security", negotiate.OrOnly(o.Securities, negotiate.TransportSecurity),
			func(uri string) bool { return uri == negotiate.TransportSecurity }, &a.Security},
	} {
		at := slices.IndexFunc(c.offered, c.ours)
		if at < 0 {
			why := "nothing in common"
			if c.item == "Assurance" {
				why = f.assure(o.Assurances[0], o).Error()
			}
			refused = append(refused, negotiate.Declined{Item: c.item, Why: why})
			continue
		}
		*c.chosen = c.offered[at]
	}
	if refused != nil {
		return refused
	}
	a.Address = f.address(a.Transport)
	if a.Transport == negotiate.HTTPTransport {
		a.Address, a.Representation = "-", negotiate.RepresentationURI("xml")
		if !slices.Contains(o.Representations, a.Representation) {
			return negotiate.RefusedItems{{Item: "Representation", Why: "plain SOAP is xml"}}
		}
	}
	return nil
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
func (f *offers) common(ctx context.Context, offered [][32]byte) ([][32]byte, error) {
	var have [][32]byte
	seen := make(map[[32]byte]bool, len(offered))
	for _, fp := range offered {
		if seen[fp] {
			continue
		}
		seen[fp] = true
		here, err := ctxstore.Has(ctx, f.cfg.Store, ctxstore.ShapeURI(fp))
		switch {
		case here:
			have = append(have, fp)
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			f.cfg.Log.Warn("shape not looked up", "err", err)
		}
	}
	return have, nil
}

// keep writes the session's context. Until the session is joined, its context expires when it may
// no longer be joined.
func (f *offers) keep(ctx context.Context, facts negotiate.Facts, a *negotiate.Answer) (revision uint64, err error) {
	hash := sha256.Sum256(a.Token[:])
	c := negotiate.Context{Facts: facts, TokenHash: hash[:], Lifetime: a.Lifetime}
	document, err := c.Marshal()
	if err != nil {
		return 0, err
	}
	o := ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: min(f.cfg.JoinWithin, a.Lifetime)}
	if facts.Common != nil {
		o.TTL = f.cfg.archived(a.Lifetime) // plain SOAP refers to it also if the session is not joined
	}
	if err := unchanging.KeepScope(ctx, f.cfg.Store, &facts, f.cfg.archived(a.Lifetime)); err != nil {
		return 0, err
	}
	return f.cfg.Store.Put(ctx, a.Session.URI(), document, o)
}

// takeHeaders returns the reason why the blocks are not agreed to; nil if they are.
func (f *offers) takeHeaders(path string, blocks []string) error {
	if len(blocks) == 0 {
		return nil
	}
	if err := negotiate.CheckHeaders(blocks); err != nil || f.cfg.UnchangingHeaders == nil {
		return err
	}
	return f.cfg.UnchangingHeaders(path, blocks)
}

// agreeCommon agrees to the common store of an offer, if it is that of this end.
func (f *offers) agreeCommon(o *negotiate.Offer, a *negotiate.Answer) {
	switch {
	case o.Common == nil:
	case f.cfg.Common != nil && f.cfg.Common.URL == o.Common.URL:
		a.ContextStore = o.Common.URL
	default:
		why := "another one is used here, or none"
		a.Refused = append(a.Refused, negotiate.Declined{Item: "ContextStore", Why: why})
	}
}

// offeredHeaders returns the header blocks of an offer, those that it refers to included. Its error
// may be sent to the initiator.
func (f *offers) offeredHeaders(ctx context.Context, o *negotiate.Offer, a *negotiate.Answer) ([]string, error) {
	if len(o.References) == 0 {
		return o.Headers, nil
	}
	if a.ContextStore == "" {
		return nil, errors.New("the blocks are in a context store that is not used here")
	}
	texts, err := f.restorer.Texts(ctx, o.Common, o.References)
	if err != nil {
		f.cfg.Log.Warn("unchanging headers not found in the common context store", "store", o.Common.URL, "err", err)
		return nil, errors.New("the blocks cannot be read from the context store")
	}
	return slices.Concat(o.Headers, texts), nil
}

// assure returns the reason why the responder cannot give an assurance; nil if it can.
func (f *offers) assure(uri string, o *negotiate.Offer) error {
	if uri == negotiate.AtMostOnce {
		return nil
	}
	a, _, ok := negotiate.ParseAssurance(uri)
	switch {
	case !ok || f.cfg.Sequenced == nil:
		return errors.New("nothing in common")
	case o.Sequence == "":
		return negotiate.ErrNoSequence
	case a == wsrm.ExactlyOnce && !ctxstore.Persists(f.cfg.Store):
		return errors.New("exactly-once needs a context store that persists, and there is none here")
	}
	return nil
}
