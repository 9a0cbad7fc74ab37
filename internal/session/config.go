package session

import (
	"cmp"
	cryptotls "crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Config is the configuration of a [Dialer]. It is copied; what it points to is shared and stays
// the caller's.
type Config struct {
	// HTTPClient carries offers and plain SOAP; nil means [http.DefaultClient]. Offers follow no
	// redirects. The client should close idle connections before servers do: a POST on a connection
	// that the server has closed has an unknown fate.
	HTTPClient *http.Client
	// Transports by name ("tls", "tcp", "udp", "inproc"); those missing are not offered. nil means
	// tls for https URLs, with the TLS configuration of HTTPClient where its Transport is one of
	// net/http. For other URLs nil means tcp, through the proxy that such a Transport has (by
	// CONNECT). If the map is empty, everything goes as plain SOAP.
	Transports map[string]streamer.Transport
	// Mode is how sessions are negotiated; empty means Explicit.
	Mode negotiate.Mode
	// Store keeps sessions, shapes, and which peers speak plain SOAP. nil means one store in memory
	// for all sessions of the dialer.
	Store ctxstore.Store
	// Coders makes the coders of streams; nil means those of a book over Store (see
	// [coders.OfBook]), with their shapes in Store.
	Coders coders.Func
	// SOAP is the version of offers. None means 1.1, and 1.2 where the peer refuses 1.1 for its
	// version.
	SOAP soap.Version
	// Representations to offer by name, preferred first; nil means binary, then xml.
	Representations []string
	// RequestSchema and ReplySchema describe the messages of each direction; nil: no description.
	// The first request that RequestSchema describes gets its shape from the schema.
	RequestSchema, ReplySchema *schema.Schema
	// Contract describes the messages of both directions by a WSDL or XML Schema; nil: none does.
	// An offer names it by its fingerprint, for what RequestSchema and ReplySchema do not describe.
	// If the peer has it, too, shapes travel as what the description does not say.
	Contract *typed.Contract
	// Shapes are fingerprints of shapes in Store that messages will use. An offer names all of them
	// that were used with the peer before; then others, up to 16 names in all, and what else was
	// used with the peer, up to 8.
	Shapes [][32]byte
	// Headers are SOAP header blocks, as XML text, that recur in messages: at most 16 of 4 KiB
	// each, and none with secrets ([negotiate.CheckHeader]). If the peer agrees, they do not travel
	// with messages that contain them byte for byte. They are taken out before the stream and put
	// back after it, transparently to the applications (docs/negotiation.md, section 3.2).
	Headers []string
	// Nodes are further URLs of the service, of nodes that share a context store: they differ from
	// the dialed one in host and port. A session goes on with the next of them when a stream ends,
	// or a node cannot be reached; a sequence goes on where it was. A request of unknown fate is
	// not sent to another node either.
	Nodes []string
	// Common is a context store that the peer uses as well; nil: there is none. If the peer agrees,
	// Headers go there, and where messages are plain SOAP all the same, those and the blocks that
	// Common names travel as references.
	Common *unchanging.CommonStore
	// Reconnect is how long a session whose stream broke tries to negotiate again, at growing
	// intervals, before it turns to plain SOAP; 0: not at all. Calls wait meanwhile. With a
	// sequence it is also how long Dial tries for the first stream.
	Reconnect time.Duration
	// Assurance is the delivery guarantee of each message; 0 or wsrm.AtMostOnce: none is sent
	// twice. Under wsrm.AtLeastOnce and wsrm.ExactlyOnce the messages of a session belong to a
	// sequence that Store has for the URL. They go on over streams, reconnections, and later
	// sessions with the same store, until they are committed. A peer that does not agree gets
	// nothing: RequireHHFR is implied. Exactly-once is BadConfig with a store that does not
	// persist. Only one session at a time can have the sequence of a store and URL.
	//
	// At-most-once in order has a sequence too, but one of the session alone, in memory. Messages
	// and replies that a broken stream takes along have an unknown fate and are not sent again.
	// Messages that were not sent go on.
	Assurance wsrm.Assurance
	// Ordered makes the peer handle messages in the order in which they were sent. They then belong
	// to a sequence under any assurance, and RequireHHFR is implied.
	Ordered bool
	// Resume: the messages are those of an earlier session with the same Store and URL, which was
	// interrupted. They must be sent one after another. For each message that the earlier session
	// accepted, as the store proves, sending returns a [negotiate.Error] with the code Accepted;
	// the messages after those are sent. Other messages than the earlier ones are OtherRun, and
	// none of them is sent (docs/cli.md, hhfr stream; [Session.Resumed]).
	Resume bool
	// LateReply, if given, is called with replies to messages of earlier sessions. number is that
	// of the message in its sequence, from 1. err is why there will be no reply. LateReply must not
	// block.
	LateReply func(number uint64, reply *streamer.Message, err error)
	// OfferFields are HTTP fields that go with offers, such as Authorization for a gateway in front
	// of the service. Fields of Config's own offers, and fields about a body or a connection, are
	// left out. OfferFields go to the URL, and to no other host. Those of a [RoundTripper] go only
	// to origins that a request was made for, and not where only a redirection leads.
	OfferFields []soap.Field
	// AllowHost lists hosts, without ports, that an answer may name besides that of the URL.
	AllowHost []string
	// AllowCleartext: offer transports without encryption for https URLs too. Anyone who listens on
	// the path can then read what HTTPS hid.
	AllowCleartext bool
	// RememberFor is how long a peer that did not agree is spoken to in plain SOAP without asking
	// again. 0 means [DefaultRememberFor]; below 0: neither remember nor look up what is
	// remembered.
	RememberFor time.Duration
	// AsksAgain: whoever calls [Dial] asks a peer again that has not decided (see [AskAgain]). That
	// is not remembered then.
	AsksAgain bool
	// Idle is how long a session of a [RoundTripper] may go without a request before it is closed.
	// 0 means [DefaultIdle]. A [Dialer] does not use it.
	Idle time.Duration
	// ProbeTLS: if a server closes the connection of an offer by http without a reply, try a TLS
	// handshake with it. If the server answers the handshake, the URL has the wrong scheme (see
	// [SchemeError]), and nothing is sent. Without ProbeTLS no such attempt is made, and the offer
	// ends in plain SOAP.
	ProbeTLS bool
	// Archive: what decodes recordings of sessions stays in Store and Common after they have
	// expired, for good.
	Archive bool
	// RequireHHFR: fail with NoHHFR instead of speaking plain SOAP.
	RequireHHFR bool
	// Timeout bounds negotiation with a node, and the opening of the stream, by all paths of Mode
	// together; 0 means [negotiate.DefaultTimeout].
	Timeout time.Duration
	// Lifetime to ask for; 0: the responder chooses.
	Lifetime time.Duration
	// Handler serves exchanges that the responder begins, until [Session.OnMessage] names another.
	// nil: there is none, and requests are canceled as failed.
	Handler streamer.ExchangeHandler
	// WrapConn, if given, wraps a stream's connection before anything is read or written (a
	// recorder). A wrapper that embeds the connection keeps what it can do beside [net.Conn] (see
	// [streamer.Transport]); one that does such a thing otherwise has the method for it.
	WrapConn func(net.Conn) net.Conn
	// OnSession, if given, is called for each session before its hello is sent, with the connection
	// as wrapped. For a request that was upgraded, the connection is the one that HTTPClient
	// dialed: it stands below a NetConn method, and a method Carried reports how many of its bytes
	// are the stream's. OnSession is called for such a session when the responder's hello has come.
	OnSession func(negotiate.Facts, net.Conn)
	// OnAgreed, if given, is told how a session speaks to an origin (see [negotiate.Origin]): when
	// the session was opened, and whenever it loses its stream for good or has another one. It must
	// not block, nor call the session.
	OnAgreed func(origin string, agreed negotiate.Agreed)
	// Stream gives limits, sizes and hooks of streams. Negotiation overwrites what it decides.
	Stream streamer.Config
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives errors that were recovered from; nil: they are not logged.
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
		return c, coded(negotiate.BadConfig, err)
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

// tlsOf returns how an HTTP client speaks to https URLs, as far as the client shows it. nil: the
// system's trust store applies.
func tlsOf(client *http.Client) *cryptotls.Config {
	if t, ok := client.Transport.(*http.Transport); ok {
		return t.TLSClientConfig
	}
	return nil
}

// sequenced reports whether sessions have a sequence.
func (c *Config) sequenced() bool { return c.kept() || c.Ordered }

// kept reports whether the sequence outlives its sessions.
func (c *Config) kept() bool { return c.Assurance > wsrm.AtMostOnce }

// shares reports whether a session has the common store of the configuration, or none as there.
func (c *Config) shares(common *negotiate.Common) bool {
	if c.Common == nil || common == nil {
		return c.Common == nil && common == nil
	}
	return c.Common.URL == common.URL
}

// archived is how long something is kept that decodes recordings; 0: for good.
func (c *Config) archived(ttl time.Duration) time.Duration {
	if c.Archive {
		return 0
	}
	return ttl
}

// hint names the description in a hello or a request that asks; nil: there is none.
func (c *Config) hint() []byte {
	if c.Contract == nil || c.RequestSchema != nil || c.ReplySchema != nil {
		return nil
	}
	return c.Contract.Hint()
}
