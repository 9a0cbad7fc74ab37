package session

import (
	"cmp"
	cryptotls "crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Config is what a [Dialer] works with. It is copied; what it points to is shared and stays the
// caller's.
type Config struct {
	// HTTPClient carries offers and plain SOAP; nil means [http.DefaultClient]. Offers follow no
	// redirects. Its idle connections should be given up before servers do: a POST on a connection
	// that the server has closed has an unknown fate.
	HTTPClient *http.Client
	// Transports by name ("tls", "tcp", "udp", "inproc"); those missing are not offered. nil means
	// tls for https URLs, with the TLS of HTTPClient where its Transport is one of net/http, and
	// tcp for others, through the proxy that such a Transport has (by CONNECT). With none in it,
	// all goes as plain SOAP.
	Transports map[string]streamer.Transport
	// Mode is how sessions come about; empty means Explicit.
	Mode negotiate.Mode
	// Store keeps sessions, shapes, and which ends speak plain SOAP; nil means memory, one for all
	// sessions of the dialer.
	Store ctxstore.Store
	// Coders makes the coders of streams; nil means those of a book over Store (see [BookCoders]).
	// Their shapes lie in Store.
	Coders coders.Func
	// SOAP is the version of offers; None means 1.1, and 1.2 where that is refused for its version.
	SOAP soap.Version
	// Representations to offer by name, preferred first; nil means binary, then xml.
	Representations []string
	// RequestSchema and ReplySchema describe the messages of each direction; nil: they are not
	// described. The shape of requests is made by the first that RequestSchema describes.
	RequestSchema, ReplySchema *schema.Schema
	// Shapes are fingerprints to offer before all others in Store, of shapes that lie there.
	Shapes [][32]byte
	// Headers are SOAP header blocks, as XML text, that stand in messages again and again, at most
	// 16 of 4 KiB; none with secrets ([CheckHeader]). If the peer agrees, they do not travel
	// with messages in which they stand byte for byte: they are taken out before, and put back
	// behind the stream, so that nobody notices (docs/negotiation.md, section 3.2).
	Headers []string
	// Reconnect is how long a session whose stream broke tries to negotiate anew, ever less often,
	// before it turns to plain SOAP; 0: not at all. What is called meanwhile waits.
	Reconnect time.Duration
	// Assurance is what holds for each message; 0 or wsrm.AtMostOnce: none is sent twice. Under
	// wsrm.AtLeastOnce and wsrm.ExactlyOnce the messages of a session stand in a sequence that
	// Store has for the URL, and go on over streams, reconnections, and later sessions with the
	// same store, until they are done. An end that does not agree gets nothing: RequireHHFR is
	// implied. Exactly-once is BadConfig with a store that does not persist. Only one session at a
	// time can have the sequence of a store and URL. At-most-once in order has a sequence too, but
	// that of the session alone, in memory: what a stream that breaks takes along, messages and
	// replies, has an unknown fate and is not sent again; what was not sent goes on.
	Assurance wsrm.Assurance
	// Ordered has messages handled in the order in which they were sent; they stand in a sequence
	// then, under any assurance, and RequireHHFR is implied.
	Ordered bool
	// Resume: the messages are those of an earlier session with the same Store and URL, which did
	// not come to its end. Sent one after another, those that it had accepted, as the store proves,
	// are an [Error] with the code Accepted; what follows is sent. Others than those are OtherRun,
	// and none is sent (docs/cli.md, hhfr stream; [Session.Resumed]).
	Resume bool
	// LateReply, if given, gets replies to messages of earlier sessions, by the number of the
	// message in its sequence, from 1, or why there will be none. It must not block.
	LateReply func(number uint64, reply *streamer.Message, err error)
	// OfferFields are HTTP fields that go with offers, such as Authorization for a gateway in front
	// of the service; those of Config's own offers, and what speaks of a body or a connection, are
	// left out. They go to the URL, and to no other host; those of a [RoundTripper] only to origins
	// that a request was made for, and not where only a redirection leads.
	OfferFields []soap.Field
	// AllowHost lists hosts, without ports, that an answer may name besides that of the URL.
	AllowHost []string
	// AllowCleartext: offer transports without encryption for https URLs too. Whoever listens on
	// the way can then read what HTTPS hid.
	AllowCleartext bool
	// RememberFor is how long an end that did not agree is spoken to in plain SOAP without asking
	// again; 0 means [DefaultRememberFor], below 0: neither remember nor look whether something is
	// remembered.
	RememberFor time.Duration
	// ProbeTLS has a server that closes the connection of an offer by http without a word tried
	// with a TLS handshake: if it answers that, the URL has the wrong scheme (see [SchemeError]),
	// and nothing is sent. Who does not want to be seen to try leaves it out; the offer then ends
	// in plain SOAP.
	ProbeTLS bool
	// RequireHHFR: fail with NoHHFR instead of speaking plain SOAP.
	RequireHHFR bool
	// Timeout bounds negotiation and opening the stream, together; 0 means
	// [negotiate.DefaultTimeout].
	Timeout time.Duration
	// Lifetime to ask for; 0: as the responder likes.
	Lifetime time.Duration
	// Handler serves exchanges that the responder begins, until [Session.OnMessage] names another;
	// nil: nobody does, and requests are cancelled as failed.
	Handler streamer.Handler
	// WrapConn, if given, wraps a stream's connection before anything is read or written (a
	// recorder).
	WrapConn func(net.Conn) net.Conn
	// OnSession, if given, is told of each session before its hello is sent, with the connection as
	// wrapped. That of a request which was upgraded is one as HTTPClient has dialed it: below a
	// NetConn method, beside which Carried tells how much of it is the stream's. Such a session is
	// told of when the responder's hello has come.
	OnSession func(negotiate.Facts, net.Conn)
	// OnAgreed, if given, is told how a session speaks to an origin (see [Origin]): when it was
	// opened, and whenever it loses its stream for good or has another one. It must not block, nor
	// call the session.
	OnAgreed func(origin string, agreed negotiate.Agreed)
	// Stream gives limits, sizes and hooks of streams; what negotiation decides is overwritten.
	Stream streamer.Config
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log hears what went wrong and was survived; nil: nobody.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	c.Store, c.Coders = coders.WithDefaults(c.Store, c.Coders, c.Clock)
	if c.HTTPClient == nil {
		c.HTTPClient = http.DefaultClient
	}
	if c.Transports == nil {
		c.Transports = map[string]streamer.Transport{
			"tls": tls.New(tlsOf(c.HTTPClient), connectingOf(c.HTTPClient, "https")),
			"tcp": connectingOf(c.HTTPClient, "http"),
		}
	}
	if err := negotiate.CheckHeaders(c.Headers); err != nil {
		return c, &negotiate.Error{Code: negotiate.BadConfig, At: -1, Err: err}
	}
	if c.Reconnect < 0 || len(c.Shapes) > negotiate.MaxShapes {
		return c, negotiate.BadConfigf("Reconnect below 0, or more than %d shapes", negotiate.MaxShapes)
	}
	switch {
	case c.Assurance > wsrm.ExactlyOnce:
		return c, negotiate.BadConfigf("no assurance of number %d", c.Assurance)
	case c.Assurance == wsrm.ExactlyOnce && !ctxstore.Persists(c.Store):
		return c, negotiate.BadConfigf("exactly-once needs a store that persists")
	}
	c.RequireHHFR = c.RequireHHFR || c.sequenced()
	if err := negotiate.CheckRepresentations(&c.Representations); err != nil {
		return c, err
	}
	c.Mode = cmp.Or(c.Mode, negotiate.Explicit)
	if _, err := negotiate.ParseMode(string(c.Mode)); err != nil {
		return c, err
	}
	for name := range c.Transports {
		if !negotiate.KnownTransport(name) {
			return c, negotiate.BadConfigf("unknown transport %q", name)
		}
	}
	if c.RememberFor == 0 {
		c.RememberFor = DefaultRememberFor
	}
	if c.Timeout <= 0 {
		c.Timeout = negotiate.DefaultTimeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// tlsOf is how an HTTP client speaks to https URLs, as far as it tells; nil: by what the system
// trusts.
func tlsOf(client *http.Client) *cryptotls.Config {
	if t, ok := client.Transport.(*http.Transport); ok {
		return t.TLSClientConfig
	}
	return nil
}

// offerable lists the URIs of transports to offer, preferred first.
func (c *Config) offerable(secure bool) []string {
	var uris []string
	for _, t := range negotiate.Transports {
		allowed := !t.HTTPSOnly
		if secure {
			allowed = t.Private || c.AllowCleartext
		}
		if _, ok := c.Transports[t.Name]; ok && allowed {
			uris = append(uris, negotiate.TransportURI(t.Name))
		}
	}
	return slices.Clip(uris)
}
