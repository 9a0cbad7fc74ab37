package negotiate

import (
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Config is what a [Dialer] works with. It is copied; what it points to is shared and stays the caller's.
type Config struct {
	// HTTPClient carries offers and plain SOAP; nil means [http.DefaultClient]. Offers follow no redirects. Its idle connections
	// should be given up before servers do: a POST on a connection that the server has closed has an unknown fate.
	HTTPClient *http.Client
	// Transports by name ("tcp", "inproc"); those missing are not offered. With none, all goes as plain SOAP.
	Transports map[string]streamer.Transport
	// Store keeps sessions, shapes, and which ends speak plain SOAP. Required.
	Store ctxstore.Store
	// Coders makes the coders of streams; see [BookCoders]. Required; their shapes lie in Store.
	Coders Coders
	// Representations to offer by name, preferred first; nil means binary, then xml.
	Representations []string
	// AllowHost lists hosts, without ports, that an answer may name besides that of the URL.
	AllowHost []string
	// AllowCleartext: offer transports without encryption for https URLs too. Whoever listens on the way can then read what HTTPS hid.
	AllowCleartext bool
	// RememberFor is how long an end that did not agree is spoken to in plain SOAP without asking again; 0 means [DefaultRememberFor], below 0:
	// neither remember nor look whether something is remembered.
	RememberFor time.Duration
	// RequireHHFR: fail with NoHHFR instead of speaking plain SOAP.
	RequireHHFR bool
	// Timeout bounds negotiation and opening the stream, together; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Lifetime to ask for; 0: as the responder likes.
	Lifetime time.Duration
	// Handler serves exchanges that the responder begins; nil: they are cancelled as unserved.
	Handler streamer.Handler
	// WrapConn, if given, wraps a stream's connection before anything is read or written (a recorder).
	WrapConn func(net.Conn) net.Conn
	// OnSession, if given, is told of each session before its hello is sent, with the connection as wrapped.
	OnSession func(Facts, net.Conn)
	// Stream gives limits, sizes and hooks of streams; what negotiation decides is overwritten.
	Stream streamer.Config
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log hears what went wrong and was survived; nil: nobody.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil || c.Coders == nil {
		return c, badConfig("Store and Coders are required")
	}
	if c.HTTPClient == nil {
		c.HTTPClient = http.DefaultClient
	}
	if err := checkRepresentations(&c.Representations); err != nil {
		return c, err
	}
	for name := range c.Transports {
		if !knownTransport(name) {
			return c, badConfig("unknown transport %q", name)
		}
	}
	if c.RememberFor == 0 {
		c.RememberFor = DefaultRememberFor
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// checkRepresentations replaces nil by all, and refuses names that nobody knows.
func checkRepresentations(names *[]string) error {
	if *names == nil {
		for _, r := range representations {
			*names = append(*names, r.name)
		}
	}
	if len(*names) == 0 || len(*names) > maxChoices {
		return badConfig("%d representations", len(*names))
	}
	for _, n := range *names {
		if _, ok := representationNumber(RepresentationURI(n)); !ok {
			return badConfig("unknown representation %q", n)
		}
	}
	return nil
}

func knownTransport(name string) bool {
	for _, t := range transports {
		if t.name == name {
			return true
		}
	}
	return false
}

// offerable lists the URIs of transports to offer, preferred first.
func (c *Config) offerable(secure bool) []string {
	var uris []string
	for _, t := range transports {
		if _, ok := c.Transports[t.name]; ok && (!secure || t.private || c.AllowCleartext) {
			uris = append(uris, TransportURI(t.name))
		}
	}
	return slices.Clip(uris)
}
