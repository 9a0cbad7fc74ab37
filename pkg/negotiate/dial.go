package negotiate

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

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Dialer opens sessions. It is safe for concurrent use.
type Dialer struct{ cfg Config }

// NewDialer checks the configuration. Errors: BadConfig.
func NewDialer(cfg Config) (*Dialer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Dialer{cfg}, nil
}

// Dial is for one session; see [Dialer.Dial].
func Dial(ctx context.Context, rawURL string, cfg Config) (*Session, error) {
	d, err := NewDialer(cfg)
	if err != nil {
		return nil, err
	}
	return d.Dial(ctx, rawURL)
}

// Dial negotiates with the service at an http or https URL and opens the stream. When the other end does not agree, for whatever reason, the
// session speaks plain SOAP and [Session.Agreed] tells why. ctx bounds Dial only. Errors: BadConfig for a URL that is none, Unreachable when
// nobody is there at all, NoHHFR with RequireHHFR, the error of ctx.
func (d *Dialer) Dial(ctx context.Context, rawURL string) (*Session, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, &Error{Code: BadConfig, At: -1, Err: err}
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, badConfig("%q is no http or https URL", u.Redacted())
	}
	u.Fragment = ""
	s := &Session{cfg: &d.cfg, url: u, implicit: implicitOf(u)}
	stop, err := d.open(ctx, s)
	if ctx.Err() != nil {
		if s.stream != nil {
			s.stream.Abort(streamer.CloseGoingAway, "the caller gave up")
		}
		return nil, context.Cause(ctx)
	}
	if err == nil {
		return s, nil
	}
	if stop {
		return nil, err
	}
	s.agreed = Agreed{Why: err.Error()}
	var refused *refusal
	if errors.As(err, &refused) {
		s.agreed.Remembered = refused.remembered
		if !refused.remembered {
			d.remember(ctx, u, refused)
		}
	}
	d.cfg.Log.Info("plain SOAP", "url", u.Redacted(), "why", s.agreed.Why)
	if d.cfg.RequireHHFR {
		return nil, &Error{Code: NoHHFR, At: -1, Remote: refused != nil, Err: err}
	}
	return s, nil
}

// refusal is a reason for plain SOAP that the other end gave, and that is remembered.
type refusal struct {
	err        error
	remembered bool
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// open goes all the way to a stream in s. stop: there is no use in plain SOAP either.
func (d *Dialer) open(ctx context.Context, s *Session) (stop bool, err error) {
	offer := &Offer{
		Schemes: []string{Scheme}, Transports: d.cfg.offerable(s.url.Scheme == "https"), Lifetime: d.cfg.Lifetime,
		RequestHead: defaultRequestFields, ReplyHead: defaultReplyFields,
	}
	for _, name := range d.cfg.Representations {
		offer.Representations = append(offer.Representations, RepresentationURI(name))
	}
	if len(offer.Transports) == 0 {
		if s.url.Scheme == "https" && len(d.cfg.Transports) > 0 {
			return false, errors.New("no transport as private as https")
		}
		return false, errors.New("no transport to offer")
	}
	if err := d.recall(ctx, s.url); err != nil {
		return false, err
	}
	if offer.Shapes, err = d.known(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	answer, err := d.ask(ctx, s.url, offer)
	if err != nil {
		return errors.Is(err, &Error{Code: Unreachable}), err
	}
	return false, d.join(ctx, s, answer)
}

// known lists fingerprints of shapes that the store has.
func (d *Dialer) known(ctx context.Context) ([][32]byte, error) {
	var fps [][32]byte
	for info, err := range d.cfg.Store.List(ctx, ctxstore.ShapePrefix) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			d.cfg.Log.Warn("shape not offered", "err", err)
			continue
		}
		if fp, ok := ctxstore.ParseShapeURI(info.URI); ok {
			fps = append(fps, fp)
		}
		if len(fps) == MaxShapes {
			break
		}
	}
	return fps, nil
}

// ask posts the offer and takes the answer.
func (d *Dialer) ask(ctx context.Context, u *url.URL, offer *Offer) (*Answer, error) {
	body, err := offer.Message(soap.V11)
	if err != nil {
		return nil, err
	}
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Code: BadConfig, At: -1, Err: err}
	}
	fields, err := soap.RequestFields(soap.V11, OfferAction)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		req.Header[f.Name] = []string{f.Value}
	}
	client := *d.cfg.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		err = withoutURL(err)
		if !connected.Load() {
			return nil, &Error{Code: Unreachable, At: -1, Err: err}
		}
		return nil, &refusal{err: fmt.Errorf("offer: %w", err)}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxOffer+1))
	if err != nil {
		return nil, &refusal{err: fmt.Errorf("answer: %w", err)}
	}
	answer, err := judge(resp, data, offer)
	if err != nil {
		return nil, &refusal{err: err}
	}
	return answer, nil
}

// withoutURL takes the URL, whose query may be secret, out of an error of an HTTP client: what remains is told and stored.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// judge tells an answer from everything else that may come back.
func judge(resp *http.Response, data []byte, offer *Offer) (*Answer, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK {
		if _, err := ParseAnswer(data); err != nil && soap.Recognize(data).Fault {
			return nil, fmt.Errorf("HTTP status %d: %w", resp.StatusCode, err)
		}
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	if v := soap.ParseContentType(media).Version(); v == soap.None {
		return nil, fmt.Errorf("reply of type %q", media)
	}
	answer, err := ParseAnswer(data)
	if err != nil {
		return nil, err
	}
	return answer, answer.fits(offer)
}

// join opens the stream that was agreed on.
func (d *Dialer) join(ctx context.Context, s *Session, a *Answer) error {
	transport, _ := strings.CutPrefix(a.Transport, transportPrefix)
	addr, err := d.streamAddr(transport, a.Address, s.url)
	if err != nil {
		return &refusal{err: err}
	}
	facts := Facts{
		Session: a.Session, Scheme: a.Scheme, Representation: a.Representation, Transport: a.Transport,
		Origin: originOf(s.url), Path: s.implicit.path, Address: a.Address, Expires: d.cfg.Clock.Now().Add(a.Lifetime), PeerShapes: a.Shapes,
	}
	document, err := (&contextDocument{Facts: facts}).marshal()
	if err != nil {
		return err
	}
	// Another session of this name at this end can only be one that ended, or the same store at the other end: that one is not overwritten.
	if _, err := d.cfg.Store.Put(ctx, a.Session.URI(), document, ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: a.Lifetime}); err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		return err
	}
	number, _ := representationNumber(a.Representation)
	coder, err := d.cfg.Coders(ctx, CoderSpec{Representation: number, Limits: d.cfg.Stream.Limits, PeerKnows: a.Shapes})
	if err != nil {
		return err
	}
	conn, err := d.cfg.Transports[transport].Dial(ctx, addr)
	if err != nil {
		return &refusal{err: fmt.Errorf("stream: %w", err)}
	}
	if d.cfg.WrapConn != nil {
		conn = d.cfg.WrapConn(conn)
	}
	if d.cfg.OnSession != nil {
		d.cfg.OnSession(facts, conn)
	}
	cfg := d.cfg.Stream
	cfg.Initiator, cfg.Session, cfg.Token = true, a.Session, a.Token[:]
	cfg.Representation, cfg.Coder, cfg.Accept, cfg.Handler = number, coder, nil, d.cfg.Handler
	stream, err := streamer.Over(ctx, conn, cfg)
	if err != nil {
		return &refusal{err: fmt.Errorf("stream: %w", err)}
	}
	tellLimits(coder, stream.Hello())
	s.stream, s.lane, s.agreed = stream, stream.Lane(0), Agreed{HHFR: true, Facts: &facts}
	return nil
}

// streamAddr says where to open the stream, and refuses hosts that the URL did not name and nobody allowed: an answer must not send
// messages, or connections from inside a network, elsewhere.
func (d *Dialer) streamAddr(transport, address string, u *url.URL) (string, error) {
	if transport != "tcp" {
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

func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// plainURI is where the store keeps that an end speaks plain SOAP.
func plainURI(u *url.URL) string { return xmlns.HHFRNegotiation + ":plain:" + originOf(u) }

// recall gives the reason for plain SOAP that is remembered of the end, nil if there is none.
func (d *Dialer) recall(ctx context.Context, u *url.URL) error {
	if d.cfg.RememberFor < 0 {
		return nil
	}
	entry, err := d.cfg.Store.Get(ctx, plainURI(u))
	switch {
	case err == nil:
		return &refusal{err: fmt.Errorf("remembered: %s", entry.Value), remembered: true}
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		return nil
	}
	return err
}

func (d *Dialer) remember(ctx context.Context, u *url.URL, why error) {
	if d.cfg.RememberFor < 0 {
		return
	}
	if _, err := d.cfg.Store.Put(ctx, plainURI(u), []byte(why.Error()), ctxstore.PutOptions{TTL: d.cfg.RememberFor}); err != nil {
		d.cfg.Log.Warn("plain SOAP not remembered", "url", u.Redacted(), "err", err)
	}
}
