package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// negotiation is one attempt, from an offer to a stream.
type negotiation struct {
	dialer *Dialer
	cfg    *Config
	log    *slog.Logger
	url    *url.URL
	serve  streamer.ExchangeHandler
	outbox *outbox // nil: no sequence
	taken  *atomic.Int64
	client *http.Client
	asker  http.RoundTripper // sends what asks for a stream
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

	// the context of the session that is joined again; nil: it is another session
	met                *negotiate.Context
	transport, address string // of the stream that was opened
	agreed             negotiate.Agreed
	coder              streamer.Coder
	headers            *laterHeaders // of the stream; nil: it has none
	stream             *streamer.Stream
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

// try tries one path to a stream, and records the outcome.
func (n *negotiation) try(mode negotiate.Mode, way func() error) error {
	n.transport, n.address = "", ""
	err := way()
	n.tried(mode, err)
	return err
}

// tried records the outcome of a path.
func (n *negotiation) tried(mode negotiate.Mode, err error) {
	a := negotiate.Attempt{Mode: mode, Transport: n.transport, Address: n.address}
	if err != nil {
		a.Why = err.Error()
	} else {
		n.agreed.Mode = mode
	}
	n.agreed.Tried = append(n.agreed.Tried, a)
}

// plainFacts returns those of a session with the defaults for everything.
func (n *negotiation) plainFacts(id negotiate.SessionID, transport, address string) negotiate.Facts {
	return negotiate.Facts{
		Session:        id,
		Scheme:         negotiate.Scheme,
		Representation: negotiate.RepresentationURI("binary"),
		Transport:      negotiate.TransportURI(transport),
		Assurance:      negotiate.AtMostOnce,
		Security:       negotiate.TransportSecurity,
		Origin:         negotiate.Origin(n.url),
		Path:           negotiate.PathOf(n.url),
		Address:        address,
		Expires:        n.cfg.Clock.Now().Add(negotiate.DefaultLifetime),
	}
}

// portOf returns ":PORT" of a URL.
func portOf(u *url.URL) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(negotiate.Origin(u), u.Scheme+"://"))
	return ":" + port
}

// dropReferrer ends the referrer of an offer whose store was not agreed on.
func (n *negotiation) dropReferrer() {
	if n.referrer != nil {
		n.referrer.Close()
		n.referrer = nil
	}
}

// targetOf returns what a first contact names a service by: its URL, without what may be secret.
func targetOf(u *url.URL) string {
	target := *u
	target.RawQuery, target.Fragment, target.User, target.RawPath = "", "", nil, ""
	return target.String()
}

// declares returns what the description declares for the service of the negotiation; nil: nothing.
func (n *negotiation) declares() *wsdl.DeclaredStreams {
	if n.cfg.Contract == nil {
		return nil
	}
	return n.cfg.Contract.StreamsAt(n.url)
}
