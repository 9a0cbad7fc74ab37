package hhfr

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Guarantee is the delivery guarantee of each message of a client. The zero value is at-most-once:
// no message is sent twice, and a message lost with a broken connection is an error that says so.
type Guarantee uint8

const (
	// AtLeastOnce sends messages again until the service has taken them. Until then they are
	// pending in Config.Store.
	AtLeastOnce Guarantee = iota + 1
	// ExactlyOnce also ensures that the service takes no message twice. Both peers need a store
	// that outlives the process.
	ExactlyOnce
)

var assurances = map[Guarantee]wsrm.Assurance{
	0: wsrm.AtMostOnce, AtLeastOnce: wsrm.AtLeastOnce, ExactlyOnce: wsrm.ExactlyOnce,
}

// String returns the guarantee in words.
func (g Guarantee) String() string { return assurances[g].String() }

// Config configures a [Client] or [Transport]. The zero value works, and so does nil. It is copied;
// what it points to is shared and stays the caller's.
type Config struct {
	// Store holds what is known of services, the shapes of messages, and messages under a
	// guarantee; nil: memory, for as long as the client lives.
	Store ctxstore.Store
	// Guarantee is the delivery guarantee of each message; 0: at-most-once. With any other one the
	// peer must agree: plain SOAP is not used.
	Guarantee Guarantee
	// Ordered makes the peer handle messages in the order in which they were sent; false: as they
	// arrive. With it the peer must agree: plain SOAP is not used.
	Ordered bool
	// Mode is how a stream is opened. "first-call": by the first request, which is answered in any
	// case. "met": by what Store remembers of the service. "explicit": by an offer before the first
	// request. "auto": the first of met, explicit and first-call that works. "": "auto".
	Mode negotiate.Mode
	// TLS is for https URLs: the trusted certificates and the client's own; nil: those of the
	// system, and none.
	TLS *tls.Config
	// Header are HTTP fields of every request, and of what is sent to agree with the peer, such as
	// Authorization or User-Agent; nil: none. Fields of a request itself take precedence.
	Header http.Header
	// Schema describes the bodies of requests ([schema.Parse]); nil: their shape is learned.
	Schema *schema.Schema
	// Unchanging are SOAP header blocks, exactly as in messages, that messages have in common: at
	// most 16 of 4 KiB each, none about security. Where the peer agrees they do not travel. nil:
	// none. They need an offer: Mode "auto" makes one, "first-call" is an error.
	Unchanging []string
	// Common is a context store that the service uses as well; nil: there is none. Unchanging goes
	// there in place of the offer, and what messages refer to. It needs an offer, too.
	Common *CommonContexts
	// Archive keeps what decodes recordings of sessions in Store and Common for good; false: as
	// long as the sessions last.
	Archive bool
	// Nodes are further URLs of the service a [Client] is dialed for, of nodes that share a context
	// store with it: they differ in host and port. When a node dies the client goes on with
	// another one, and a message under a guarantee is taken by one of them. nil: there are none. A
	// [Transport] has none.
	Nodes []string
	// Reconnect is how long the client tries to open another stream when one broke, before it uses
	// plain SOAP; calls wait meanwhile. 0: 30 seconds; below 0: not at all.
	Reconnect time.Duration
	// OnPlain, if given, is called with the reason when plain SOAP is used although a stream was
	// wanted, and with the remedy if one is known: once for each service, until there was a stream
	// again. A [Transport] that speaks plain SOAP with more than 1000 services may call it again
	// for one. It is called by a goroutine of the client; it must not block, nor call the client.
	OnPlain func(why error)
	// Log receives problems that were survived; nil: nothing is logged.
	Log *slog.Logger
}

const defaultReconnect = 30 * time.Second

// session is the configuration of sessions whose plain SOAP goes over client. Package negotiate
// validates it.
func (c *Config) session(client *http.Client) (session.Config, error) {
	assurance, ok := assurances[c.Guarantee]
	if !ok {
		return session.Config{}, invalid(fmt.Errorf("no guarantee of number %d", c.Guarantee))
	}
	common, err := c.Common.opened()
	if err != nil {
		return session.Config{}, err
	}
	if err := checkFields(c.Header); err != nil {
		return session.Config{}, invalid(fmt.Errorf("Config.Header: %w", err))
	}
	cfg := session.Config{
		HTTPClient: client, Store: c.Store, Assurance: assurance, Ordered: c.Ordered, RequestSchema: c.Schema,
		Headers: c.Unchanging, Common: common, Archive: c.Archive,
		Nodes: c.Nodes, Reconnect: max(c.Reconnect, 0), Log: c.Log, Mode: cmp.Or(c.Mode, negotiate.Auto),
	}
	if c.Reconnect == 0 {
		cfg.Reconnect = defaultReconnect
	}
	for name, values := range c.Header {
		for _, v := range values {
			cfg.OfferFields = append(cfg.OfferFields, soap.Field{Name: name, Value: v})
		}
	}
	if c.OnPlain != nil {
		cfg.OnAgreed = (&plainness{tell: c.OnPlain}).agreed
	}
	return cfg, nil
}

// checkFields reports what cannot stand in the head of a request.
func checkFields(header http.Header) error {
	_, err := httpmsg.RequestHead(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/"}, Header: header})
	var e *negotiate.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// transport is the HTTP transport of plain SOAP.
func (c *Config) transport() *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	t = t.Clone()
	// A request on a connection that the server closes at that moment has an unknown fate: close
	// idle connections before servers do.
	t.IdleConnTimeout = 5 * time.Second
	if c.TLS != nil {
		t.TLSClientConfig = c.TLS.Clone()
	}
	return t
}

// addTo adds the common fields to those of a request, except the fields that it has itself.
func (c *Config) addTo(header http.Header) {
	for name, values := range c.Header {
		if _, ok := header[http.CanonicalHeaderKey(name)]; !ok {
			header[name] = values
		}
	}
}

// plainness calls OnPlain once when a peer turns to plain SOAP, for as many peers as maxPlain.
type plainness struct {
	tell func(why error)

	mu    sync.Mutex
	plain map[string]bool // by origin: OnPlain was called
}

// maxPlain is of how many services it is known that OnPlain was called.
const maxPlain = 1000

// news records whether a service is spoken to in plain SOAP, and reports whether OnPlain is to be
// called.
func (p *plainness) news(origin string, plain bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := p.plain[origin]
	if !plain {
		delete(p.plain, origin)
	}
	if !plain || told {
		return false
	}
	for other := range p.plain {
		if len(p.plain) < maxPlain {
			break
		}
		delete(p.plain, other)
	}
	if p.plain == nil {
		p.plain = map[string]bool{}
	}
	p.plain[origin] = true
	return true
}

// agreed is [negotiate.Config.OnAgreed].
func (p *plainness) agreed(origin string, a negotiate.Agreed) {
	plain := a.Why != ""
	if !p.news(origin, plain) {
		return
	}
	why := fmt.Errorf("plain SOAP to %s: %w", origin, errors.New(a.Why))
	if a.NoStream != "" {
		why = fmt.Errorf("%w; %s", why, session.BlockedHint)
	}
	p.tell(&Error{Code: NoHHFR, Err: why})
}
