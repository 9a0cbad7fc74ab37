package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// negotiation is one attempt, from an offer to a stream.
type negotiation struct {
	dialer *Dialer
	url    *url.URL
	serve  streamer.ExchangeHandler
	outbox *outbox // nil: no sequence
	taken  *atomic.Int64
	client *http.Client
	asker  *asker // nil: the mode is Explicit
	// careful: a stream has just broken, and calls on another one might have an unknown fate as
	// well. The stream is not used before it is clear that the peer is there.
	careful bool

	// the context of the session that was joined again; nil: it is another session
	met                *negotiate.Context
	transport, address string // of the stream that was opened
	agreed             negotiate.Agreed
	coder              streamer.Coder
	stream             *streamer.Stream
}

// open negotiates and opens the stream. An error of code Unreachable means that plain SOAP is of no
// use either.
func (n *negotiation) open(ctx context.Context) error {
	cfg := &n.dialer.cfg
	secure := n.url.Scheme == "https"
	offer := &negotiate.Offer{
		Sequence:    n.outbox.name(),
		Schemes:     []string{negotiate.Scheme},
		Transports:  cfg.offerable(secure),
		Lifetime:    cfg.Lifetime,
		Assurances:  []string{n.dialer.assurance()},
		Securities:  []string{negotiate.TransportSecurity},
		Request:     negotiate.Describe(cfg.RequestSchema),
		Reply:       negotiate.Describe(cfg.ReplySchema),
		Headers:     cfg.Headers,
		RequestHead: negotiate.DefaultRequestFields,
		ReplyHead:   negotiate.DefaultReplyFields,
	}
	for _, name := range cfg.Representations {
		offer.Representations = append(offer.Representations, negotiate.RepresentationURI(name))
	}
	if len(offer.Transports) == 0 {
		if secure && len(cfg.Transports) > 0 {
			return errors.New("the URL is https, and no transport that may be offered is encrypted")
		}
		return errors.New("no transport to offer")
	}
	var err error
	if offer.Shapes, err = n.dialer.known(ctx); err != nil {
		return err
	}
	n.agreed = negotiate.Agreed{Offer: offer, Tried: n.agreed.Tried}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
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
	if errors.As(err, &f) {
		n.agreed.Refused = f.Items
	}
	if err != nil {
		return err
	}
	shown := *answer
	shown.Token = [16]byte{}
	n.agreed.Answer, n.agreed.Refused = &shown, answer.Refused
	return n.join(ctx, answer)
}

// late replaces an error that comes from the end of the time with the time that there was.
func (n *negotiation) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not within %v", n.dialer.cfg.Timeout)
	}
	return err
}

// known returns fingerprints of shapes that the store has.
func (d *Dialer) known(ctx context.Context) ([][32]byte, error) {
	fps := d.cfg.Shapes
	for info, err := range d.cfg.Store.List(ctx, ctxstore.ShapePrefix) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			d.cfg.Log.Warn("shape not offered", "err", err)
			continue
		}
		if len(fps) >= negotiate.MaxShapes {
			break
		}
		if fp, ok := ctxstore.ParseShapeURI(info.URI); ok && !slices.Contains(d.cfg.Shapes, fp) {
			fps = append(fps[:len(fps):len(fps)], fp)
		}
	}
	return fps, nil
}

// ask posts the offer and reads the answer.
func (n *negotiation) ask(ctx context.Context, v soap.Version, offer *negotiate.Offer) (*negotiate.Answer, error) {
	body, err := offer.Message(v)
	if err != nil {
		return nil, err
	}
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, n.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &negotiate.Error{Code: negotiate.BadConfig, At: -1, Err: err}
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
		if wrong := schemeOf(n.url, err); wrong != nil {
			return nil, wrong
		}
		err = n.late(ctx, withoutURL(err))
		switch {
		case !connected.Load(), TroubleOf(err) != 0:
			return nil, &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: err}
		case n.dialer.cfg.ProbeTLS && ctx.Err() == nil && n.speaksTLS(ctx):
			return nil, wrongScheme("https")
		}
		return nil, &refusal{err: fmt.Errorf("no reply to the offer: %w", err), passing: true}
	}
	if err := schemeReply(n.url, resp); err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, negotiate.MaxOffer+1))
	if err != nil {
		return nil, &refusal{err: fmt.Errorf("the reply to the offer broke off: %w", n.late(ctx, err)), passing: true}
	}
	answer, err := judge(resp, data, offer)
	if err != nil {
		portal := mayBePortal(resp)
		return nil, &refusal{err: err, passing: portal || isPassing(resp.StatusCode, err), portal: portal}
	}
	return answer, nil
}

// offerFields adds the fields that go with offers.
func (n *negotiation) offerFields(h http.Header) {
	for _, f := range n.dialer.cfg.OfferFields {
		if !isOffersOwn(f) {
			h[f.Name] = append(h[f.Name], f.Value)
		}
	}
}

// isOffersOwn reports whether a field is about an offer's own body, action or connection.
func isOffersOwn(f soap.Field) bool {
	name := strings.ToLower(f.Name)
	return strings.HasPrefix(name, "content-") || name == "soapaction" || name == "expect" || name == "upgrade" ||
		httpmsg.IsFraming(http1.Field{Name: []byte(name)})
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

// withoutURL removes the URL, whose query may be secret, from an error of an HTTP client: the error
// is logged and stored.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
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

// join opens the stream that was agreed on.
func (n *negotiation) join(ctx context.Context, a *negotiate.Answer) error {
	d := n.dialer
	transport, _ := strings.CutPrefix(a.Transport, negotiate.TransportPrefix)
	addr, err := d.streamAddr(transport, a.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
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
	if a.HeadersKept > 0 {
		facts.Headers = d.cfg.Headers
	}
	if err := d.keepSchemas(ctx, a); err != nil {
		return err
	}
	return n.openStream(ctx, &opening{facts: facts, transport: transport, addr: addr, token: a.Token[:]})
}

// opening is what openStream needs to open a stream.
type opening struct {
	facts           negotiate.Facts
	transport, addr string
	token           []byte
	early           *streamer.PeerLimits // limits that the responder has promised: its hello is not waited for
	stages          *uint64              // stages that were agreed on before; nil: all
	dialing         context.Context      // bounds the dialing alone; nil: the context of all
}

// openStream opens the stream of a session.
func (n *negotiation) openStream(ctx context.Context, o *opening) error {
	n.transport, n.address = o.facts.Transport, o.addr
	cfg, err := n.streamConfig(ctx, &o.facts)
	if err != nil {
		return err
	}
	dialing := o.dialing
	if dialing == nil {
		dialing = ctx
	}
	conn, err := n.connect(dialing, o)
	if err != nil {
		refused := noStream(o.addr, n.late(ctx, err))
		refused.unsent = true
		return refused
	}
	cfg.Session, cfg.Token, cfg.Early = o.facts.Session, o.token, o.early
	if o.stages != nil {
		cfg.Without = ^*o.stages
	}
	return n.over(ctx, conn, cfg, &o.facts, o.addr)
}

// streamConfig stores the facts of a session, and prepares the configuration of its stream.
func (n *negotiation) streamConfig(ctx context.Context, facts *negotiate.Facts) (cfg streamer.Config, err error) {
	d := n.dialer
	number, _ := negotiate.RepresentationNumber(facts.Representation)
	n.coder, err = d.cfg.Coders(ctx, coders.Spec{
		Representation: number,
		Limits:         d.cfg.Stream.Limits,
		PeerKnows:      facts.PeerShapes,
		Schema:         d.cfg.RequestSchema,
	})
	if err != nil {
		return cfg, err
	}
	cfg = d.cfg.Stream
	cfg.Initiator, cfg.Representation, cfg.Coder, cfg.Accept, cfg.Handler = true, number, n.coder, nil, n.serve
	if len(facts.Headers) > 0 {
		headers := &unchanging.Blocks{Texts: facts.Headers, Taken: n.taken}
		cfg.Outgoing, cfg.Incoming = headers.Outgoing, headers.Incoming
	}
	if n.outbox != nil {
		q := n.outbox.sequence()
		cfg.Acks, cfg.Handler = q.Acks, q.Handler(n.serve, d.cfg.Log)
	}
	return cfg, nil
}

// keepFacts stores the context of a session for whoever decodes a recording of it.
func (n *negotiation) keepFacts(ctx context.Context, facts *negotiate.Facts) error {
	document, err := (&negotiate.Context{Facts: *facts}).Marshal()
	if err != nil {
		return err
	}
	store, now := n.dialer.cfg.Store, n.dialer.cfg.Clock.Now()
	// If this end has another session of this name, it can only be one that is joined again, or the
	// peer uses the same store. That session is not overwritten.
	_, err = store.Put(ctx, facts.Session.URI(), document,
		ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: facts.Expires.Sub(now)})
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		return nil
	}
	return err
}

// over makes a stream of a connection that was opened for it.
func (n *negotiation) over(
	ctx context.Context, conn net.Conn, cfg streamer.Config, facts *negotiate.Facts, addr string,
) error {
	d := n.dialer
	opened := conn
	if d.cfg.WrapConn != nil {
		conn = d.cfg.WrapConn(conn)
	}
	if d.cfg.OnSession != nil {
		d.cfg.OnSession(*facts, conn)
	}
	stream, err := streamer.Over(ctx, netconn.Wrap(conn, opened), cfg)
	if err != nil {
		return noStream(addr, n.late(ctx, err))
	}
	return n.opened(ctx, stream, facts)
}

// opened takes over a stream that is open.
func (n *negotiation) opened(ctx context.Context, stream *streamer.Stream, facts *negotiate.Facts) error {
	select {
	case <-stream.Met():
		facts.Proxy = stream.Hello().Proxy
	default: // what was remembered of the peer applies
	}
	err := n.keepFacts(ctx, facts)
	if err == nil && n.outbox != nil {
		err = n.outbox.taken(ctx)
	}
	if err != nil {
		stream.Abort(streamer.CloseInternal, "the context store failed")
		return err
	}
	if n.outbox != nil {
		n.outbox.sequence().Attach(stream)
	}
	n.stream, n.agreed.HHFR, n.agreed.Facts = stream, true, facts
	return nil
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
		if err := coders.KeepSchema(ctx, d.cfg.Store, s, a.Lifetime); err != nil {
			return err
		}
	}
	return nil
}

// streamAddr returns the address at which to open the stream. It refuses hosts that the URL did not
// name and the configuration does not allow: an answer must not send messages, or connections from
// inside a network, elsewhere.
func (d *Dialer) streamAddr(transport, address string, u *url.URL) (string, error) {
	if !negotiate.HasPorts(transport) {
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || strings.Trim(port, "0123456789") != "" {
		return "", fmt.Errorf("answer names stream address %q", address)
	}
	if host == "" {
		host = u.Hostname()
	}
	same := func(h string) bool { return strings.EqualFold(h, host) || sameIP(h, host) }
	if !same(u.Hostname()) && !slices.ContainsFunc(d.cfg.AllowHost, same) {
		return "", fmt.Errorf("answer names stream host %q, which is neither that of the URL nor allowed", host)
	}
	return net.JoinHostPort(host, port), nil
}

func sameIP(a, b string) bool {
	x, y := net.ParseIP(a), net.ParseIP(b)
	return x != nil && x.Equal(y)
}
