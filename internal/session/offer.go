package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
)

// open negotiates and opens the stream. An error of code Unreachable means that plain SOAP is of no
// use either.
func (n *negotiation) open(ctx context.Context) error {
	cfg := n.cfg
	offer := &negotiate.Offer{
		Sequence:    n.outbox.name(),
		Schemes:     []string{negotiate.Scheme},
		Transports:  cfg.streams(negotiate.Explicit, n.url),
		Lifetime:    cfg.Lifetime,
		Assurances:  []string{n.dialer.assurance()},
		Securities:  []string{negotiate.TransportSecurity},
		Request:     cfg.describe(cfg.RequestSchema),
		Reply:       cfg.describe(cfg.ReplySchema),
		Headers:     cfg.Headers,
		RequestHead: negotiate.DefaultRequestFields,
		ReplyHead:   negotiate.DefaultReplyFields,
	}
	for _, name := range cfg.Representations {
		offer.Representations = append(offer.Representations, negotiate.RepresentationURI(name))
	}
	if cfg.Common != nil && !cfg.sequenced() {
		offer.Transports = append(offer.Transports, negotiate.HTTPTransport)
	}
	if len(offer.Transports) == 0 {
		if n.url.Scheme == "https" && len(cfg.Transports) > 0 {
			return errors.New("the URL is https, and no transport that may be offered is encrypted")
		}
		return errors.New("no transport to offer")
	}
	offer.Shapes = n.dialer.known(ctx, n.url)
	n.agreed = negotiate.Agreed{Offer: offer, Tried: n.agreed.Tried}
	n.dropReferrer()
	n.offerCommon(ctx, offer)
	version := cfg.SOAP
	if version == soap.None {
		version = soap.V11
	}
	answer, err := n.ask(ctx, version, offer)
	var f *negotiate.FaultAnswer
	if cfg.SOAP == soap.None && errors.As(err, &f) && f.Fault.Code == soap.VersionMismatch {
		version = soap.V12
		answer, err = n.ask(ctx, version, offer)
	}
	if err == nil && n.outbox.joined() && !answer.SequenceKnown {
		if err := n.outbox.lost(ctx); err != nil {
			return err
		}
		offer.Sequence = n.outbox.name()
		answer, err = n.ask(ctx, version, offer)
	}
	if err == nil && answer.ContextStore == "" && offer.Common != nil {
		n.dropReferrer()
		if refused := answer.Refused; len(offer.References) > 0 {
			n.withoutCommon(offer)
			if answer, err = n.ask(ctx, version, offer); err == nil {
				answer.Refused = append(refused, answer.Refused...)
			}
		}
	}
	if errors.As(err, &f) {
		n.agreed.Refused = f.Items
	}
	if err != nil {
		n.dropReferrer()
	}
	if err != nil {
		return err
	}
	shown := *answer
	shown.Token = [16]byte{}
	n.agreed.Answer, n.agreed.Refused = &shown, answer.Refused
	return n.join(ctx, answer)
}

// ask posts the offer and reads the answer.
func (n *negotiation) ask(ctx context.Context, v soap.Version, offer *negotiate.Offer) (*negotiate.Answer, error) {
	body, err := offer.Message(v)
	if err != nil {
		return nil, err
	}
	tracing, connected := traced(ctx)
	req, err := http.NewRequestWithContext(tracing, http.MethodPost, n.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, coded(negotiate.BadConfig, err)
	}
	fields, err := soap.RequestFields(v, negotiate.OfferAction)
	if err != nil {
		return nil, err
	}
	n.offerFields(req.Header)
	for _, f := range fields {
		req.Header[f.Name] = []string{f.Value}
	}
	http1.NameAgent(req.Header)
	client := *n.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, n.noReply(ctx, err, connected.Load(), "no reply to the offer: %w")
	}
	if err := schemeReply(n.url, resp); err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, negotiate.MaxOffer+1))
	if err != nil {
		return nil, &refusal{err: fmt.Errorf("the reply to the offer broke off: %w", late(ctx, err)), passing: true,
			undecided: true}
	}
	answer, err := judge(resp, data, offer)
	if err != nil {
		portal := mayBePortal(resp)
		refused := &refusal{err: err, passing: portal || isPassing(resp.StatusCode, err), portal: portal}
		refused.undecided, refused.after = n.dialer.undecided(resp)
		return nil, refused
	}
	return answer, nil
}

// offerFields adds the fields that go with offers.
func (n *negotiation) offerFields(h http.Header) {
	for _, f := range n.cfg.OfferFields {
		if !isOffersOwn(f) {
			h[f.Name] = append(h[f.Name], f.Value)
		}
	}
}

// isOffersOwn reports whether a field is about an offer's own body, action or connection.
func isOffersOwn(f soap.Field) bool {
	name := strings.ToLower(f.Name)
	return strings.HasPrefix(name, "content-") || name == "soapaction" || name == "expect" || name == "upgrade" ||
		httpmsg.IsFraming(http1.FieldLine{Name: []byte(name)})
}

// isPassing reports whether the refusal may pass: gateways whose server is just starting, and
// responders without space for another session.
func isPassing(status int, err error) bool {
	var f *negotiate.FaultAnswer
	if errors.As(err, &f) {
		return slices.ContainsFunc(f.Items, func(i negotiate.Declined) bool { return i.Item == negotiate.Busy[0].Item })
	}
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable ||
		status == http.StatusGatewayTimeout
}

// judge tells an answer apart from everything else that may come back.
func judge(resp *http.Response, data []byte, offer *negotiate.Offer) (*negotiate.Answer, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK {
		var f *negotiate.FaultAnswer
		if _, err := negotiate.ParseAnswer(data); errors.As(err, &f) {
			return nil, fmt.Errorf("HTTP status %d: %w", resp.StatusCode, f)
		}
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	if v := soap.ParseContentType(media).Version(); v == soap.None {
		return nil, fmt.Errorf("reply of type %q", media)
	}
	answer, err := negotiate.ParseAnswer(data)
	if err != nil {
		return nil, noAnswer(err)
	}
	return answer, answer.Fits(offer)
}

// noAnswer returns the error for a reply with status 200 that is no answer. The text of a fault is
// used as it is.
func noAnswer(err error) error {
	var f *negotiate.FaultAnswer
	if errors.As(err, &f) {
		return f
	}
	var e *negotiate.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return fmt.Errorf("the reply is no answer to an offer: %w", err)
}

// offerCommon offers the common context store, with the unchanging headers in it. A store that
// cannot be used is not offered.
func (n *negotiation) offerCommon(ctx context.Context, offer *negotiate.Offer) {
	cfg := n.cfg
	if cfg.Common == nil {
		return
	}
	lent := n.dialer.lent(ctx, n.url)
	common := lent.Common()
	r := n.dialer.referrer(common, lent, cmp.Or(cfg.Lifetime, keptFragments))
	references, err := r.Keep(ctx, cfg.Headers)
	if err != nil {
		r.Close()
		cfg.Log.Warn("the common context store is not offered: it cannot be used", "store", cfg.Common.URL,
			"err", err)
		n.withoutCommon(offer)
		return
	}
	n.referrer, offer.Common, offer.References = r, common, references
	if len(references) > 0 {
		offer.Headers = nil
	}
}

// withoutCommon makes an offer for which no common store is needed.
func (n *negotiation) withoutCommon(offer *negotiate.Offer) {
	offer.Common, offer.References, offer.Headers = nil, nil, n.cfg.Headers
	offer.Transports = n.cfg.streams(negotiate.Explicit, n.url)
}

// keptFragments is how long fragments are kept where no other lifetime is asked for: as long as
// responders keep sessions.
const keptFragments = 24 * time.Hour

// join opens the stream that was agreed on.
func (n *negotiation) join(ctx context.Context, a *negotiate.Answer) error {
	d := n.dialer
	facts := negotiate.Facts{
		Session:            a.Session,
		Scheme:             a.Scheme,
		Representation:     a.Representation,
		Transport:          a.Transport,
		Assurance:          a.Assurance,
		Security:           a.Security,
		Sequence:           a.Sequence,
		RequestDescription: a.Request.Name(),
		ReplyDescription:   a.Reply.Name(),
		Origin:             negotiate.Origin(n.url),
		Path:               negotiate.PathOf(n.url),
		Address:            a.Address,
		Expires:            d.cfg.Clock.Now().Add(a.Lifetime),
		PeerShapes:         a.Shapes,
	}
	switch {
	case a.HeadersKept > 0:
		facts.Headers = d.cfg.Headers
	case n.referrer != nil && len(n.agreed.Offer.References) > 0:
		n.referrer.Lost(d.cfg.Headers)
	}
	if a.ContextStore != "" {
		facts.Common = n.agreed.Offer.Common
	}
	if a.Transport == negotiate.HTTPTransport {
		if n.outbox != nil {
			return errors.New("plain SOAP was agreed on, which promises no assurance")
		}
		if err := n.keepFacts(ctx, &facts); err != nil {
			return err
		}
		n.agreed.Facts = &facts
		return errAgreedPlain
	}
	transport, _ := strings.CutPrefix(a.Transport, negotiate.TransportPrefix)
	addr, err := d.streamAddr(transport, a.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
	if err := d.keepSchemas(ctx, a); err != nil {
		return err
	}
	return n.openStream(ctx, &streamOpening{facts: facts, transport: transport, addr: addr, token: a.Token[:]})
}

// keepSchemas stores the schemas that were agreed on, as the peer does: with them the session's
// context describes its messages.
func (d *Dialer) keepSchemas(ctx context.Context, a *negotiate.Answer) error {
	for _, c := range []struct {
		ours   *schema.Schema
		agreed *negotiate.Description
	}{{d.cfg.RequestSchema, a.Request}, {d.cfg.ReplySchema, a.Reply}} {
		s := c.ours
		switch {
		case c.agreed == nil:
			continue
		case c.agreed.Schema != "":
			var err error
			if s, err = schema.Parse([]byte(c.agreed.Schema)); err != nil {
				d.cfg.Log.Warn("description in the answer not read", "err", err)
				continue
			}
		case s == nil || s.URI() != c.agreed.Fingerprint:
			continue
		}
		if err := coders.KeepSchema(ctx, d.cfg.Store, s, d.cfg.archived(a.Lifetime)); err != nil {
			return err
		}
	}
	return nil
}
