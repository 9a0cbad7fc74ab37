package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
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
	// undeclared: what the description declares has led nowhere.
	undeclared bool
	// named: hello, or the request that asked, has named the description.
	named bool
	// onePath: the peer takes only requests for the path of the one that was upgraded.
	onePath bool
	// referrer is that of the common store; nil: none is offered, or agreed on.
	referrer *unchanging.Referrer

	// the context of the session that was joined again; nil: it is another session
	met                *negotiate.Context
	transport, address string // of the stream that was opened
	agreed             negotiate.Agreed
	coder              streamer.Coder
	headers            *laterHeaders // of the stream; nil: it has none
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
		Request:     cfg.describe(cfg.RequestSchema),
		Reply:       cfg.describe(cfg.ReplySchema),
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

// within bounds a context by a time.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not within %v", d))
}

// late replaces an error that comes from the end of the time with the time that there was.
func late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
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
		err = late(ctx, withoutURL(err))
		switch {
		case !connected.Load(), TroubleOf(err) != 0:
			return nil, &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: err}
		case n.dialer.cfg.ProbeTLS && ctx.Err() == nil && n.speaksTLS(ctx):
			return nil, wrongScheme("https")
		}
		return nil, &refusal{err: fmt.Errorf("no reply to the offer: %w", err), passing: true, undecided: true}
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
