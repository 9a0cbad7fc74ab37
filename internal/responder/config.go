package responder

import (
	"context"
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
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Config is the configuration of a [Responder]. It is copied; what it points to is shared and stays
// the caller's.
type Config struct {
	// Store keeps sessions and shapes; nil means memory.
	Store ctxstore.Store
	// Coders makes the coders of streams; nil means those of a book over Store (see
	// [coders.OfBook]), with their shapes in Store.
	Coders coders.Func
	// Addresses are the addresses where streams are accepted, by the name of the transport: for
	// tls, tcp and udp ":PORT", or "HOST:PORT" to advertise another host than that of the URLs; for
	// inproc a name. A transport without an address is not agreed to.
	Addresses map[string]string
	// Admit, if given, decides from the request of an offer who may have a session. Others are
	// refused, with the error as the reason, and continue in plain SOAP. See [AdmitCertificate] and
	// [AdmitBearer]. nil: everybody.
	Admit func(*http.Request) error
	// Representations accepted, by name; nil means all.
	Representations []string
	// Serve serves an exchange of a stream; several are served at once. path is that of the request
	// target in its head, or of the negotiated URL, unescaped as in url.URL.Path. Required.
	Serve func(ctx context.Context, path string, x *streamer.Exchange)
	// Sequenced serves messages that come in sequences; nil: only at-most-once without order is
	// agreed to. Exactly-once is agreed to if Store persists.
	Sequenced Sequenced
	// Serves reports whether there is a service at a path; offers elsewhere are passed on. nil:
	// everywhere.
	Serves func(path string) bool
	// UnchangingHeaders, if given, decides whether header blocks that the messages for the service
	// at path have in common are agreed to (Config.Headers of the initiator). Services get the
	// blocks with each message either way. An error is sent to the initiator. nil: all blocks that
	// are well-formed and contain no secret are agreed to.
	UnchangingHeaders func(path string, blocks []string) error
	// Common is the context store that initiators may use for header blocks as well; nil: none is
	// agreed to. Services get the blocks with each message.
	Common *unchanging.CommonStore
	// Archive: what decodes recordings of sessions that were joined stays in Store after they have
	// expired, for good, with the fragments that messages referred to.
	Archive bool
	// ReplySchema, if given, returns the schema of the replies of the service at path; nil if there
	// is none.
	ReplySchema func(path string) *schema.Schema
	// Contract, if given, returns the description of the messages of the service at path, by a WSDL
	// or XML Schema; nil if there is none. Peers that have it, too, name it by its fingerprint;
	// named: one has named a description, which may be this one. Otherwise it is about how shapes
	// of replies are learned.
	Contract func(path string, named bool) *typed.Contract
	// MaxLifetime is the longest lifetime granted; 0 means [MaxLifetime].
	MaxLifetime time.Duration
	// JoinWithin is how long after its answer a session may be joined; 0 means [DefaultJoinWithin].
	JoinWithin time.Duration
	// MaxSessions is how many sessions there may be, waiting or joined, and how many connections; 0
	// means [DefaultMaxSessions]. When the limit is reached, sessions that wait to be joined are
	// dropped for others.
	MaxSessions int
	// MaxPerPeer is how many of them one IP address may have, or one IPv6 network of 64 bits; 0
	// means half of MaxSessions. A server with clients behind one address, of a reverse proxy for
	// example, needs as many as MaxSessions.
	MaxPerPeer int
	// WrapConn, if given, wraps a stream's connection before anything is read or written (a
	// recorder). A wrapper that embeds the connection keeps what it can do beside [net.Conn] (see
	// [streamer.Transport]); one that does such a thing otherwise has the method for it.
	WrapConn func(net.Conn) net.Conn
	// OnSession, if given, is called for each session when its stream is accepted, before our hello
	// is sent, with the connection as wrapped. For a request that was upgraded, the connection is
	// the one that net/http has; it stands below a NetConn method where some of it was read ahead.
	OnSession func(negotiate.Facts, net.Conn)
	// OnStream, if given, is called with each stream once it is open, to begin exchanges on it. It
	// must not block.
	OnStream func(negotiate.Facts, *streamer.Stream)
	// OnePath: other handlers are around this one. The stream of an upgraded connection serves only
	// POST requests for the path that its first request was for, since the others would pass no
	// handler around this one. They are refused as unprocessed, and a question by OPTIONS gets no
	// stream. It is about streams of [Handler] alone.
	OnePath bool
	// StreamContext, if given, returns the context from which those of a stream's requests are
	// made, beginning with the second; only its values count. ctx is the one to derive it from, and
	// req the request whose connection was upgraded, as the handlers around this one passed it on.
	StreamContext func(ctx context.Context, req *http.Request) context.Context
	// Stream gives limits, sizes and hooks of streams. Negotiation overwrites what it decides.
	Stream streamer.Config
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives refused offers and failed streams; nil: they are not logged.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	c.Store, c.Coders = coders.WithDefaults(c.Store, c.Coders, c.Clock)
	if err := negotiate.CheckRepresentations(&c.Representations); err != nil {
		return c, err
	}
	for name := range c.Addresses {
		if !negotiate.KnownTransport(name) {
			return c, negotiate.BadConfigf("unknown transport %q", name)
		}
	}
	if c.MaxLifetime <= 0 {
		c.MaxLifetime = MaxLifetime
	}
	if c.JoinWithin <= 0 {
		c.JoinWithin = DefaultJoinWithin
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	if c.MaxPerPeer <= 0 {
		c.MaxPerPeer = max(c.MaxSessions/2, 1)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// archived is how long something is kept that decodes recordings; 0: for good.
func (c *Config) archived(ttl time.Duration) time.Duration {
	if c.Archive {
		return 0
	}
	return ttl
}
