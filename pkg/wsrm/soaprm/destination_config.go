package soaprm

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// DestinationConfig is what an [SequenceDestination] works by. It is copied.
type DestinationConfig struct {
	// Store keeps the sequences; required. Only one process may serve from it at a time. What is
	// promised is promised as far as it persists.
	Store ctxstore.Store
	// Versions are those in which sequences are created; empty: all.
	Versions []Protocol
	// Required refuses messages of applications that are in no sequence (1.1, section 4.8).
	Required bool
	// Transactional reports whether the service at a path puts its effects into the transaction of
	// a message ([TxOf]); nil: none does. Where such a service panics, nothing has happened, and
	// its message is handled when it comes again. Of others nobody knows after a crash whether they
	// had an effect: they are not called again for that message, and its sender gets a fault.
	Transactional func(path string) bool
	// Handlers are those of further header blocks, behind those of WS-Addressing and
	// WS-ReliableMessaging.
	Handlers headers.Chain
	// Guaranteed reports whether a message is under a guarantee of what carried it. Such a message
	// must not be in a sequence of its own as well; nil: none is.
	Guaranteed func(ctx context.Context) bool
	// Expires is the longest life of a sequence; 0: 24 hours. A client may ask for a shorter one.
	Expires time.Duration
	// MaxSequences is how many sequences there may be; 0: 1024. MaxPerPeer is how many of them one
	// IP address may have, or one IPv6 network of 64 bits; 0: half of all. As many that ended are
	// remembered. Where there are too many, those go first that nobody has used.
	MaxSequences, MaxPerPeer int
	// Patience is how long a request waits for those before it in its sequence, until it is
	// answered without a reply; 0: 2 seconds.
	Patience time.Duration
	// Callbacks are hosts, HOST or HOST:PORT, that clients may have replies and acknowledgements
	// sent to. Others only have them sent to the host that their request comes from: so nobody can
	// have this end send to whom it likes.
	Callbacks []string
	// Client sends what does not go on the connections of requests; nil means one of its own. It
	// follows no redirects.
	Client *http.Client
	// Clock is the clock; nil means the real one. Log hears what went wrong; nil: nobody.
	Clock clock.Clock
	Log   *slog.Logger
}

const (
	defaultExpires      = 24 * time.Hour
	defaultMaxSequences = 1024
	defaultPatience     = 2 * time.Second
)

func (c *DestinationConfig) withDefaults() error {
	if c.Store == nil || c.Expires < 0 || c.Patience < 0 || c.MaxSequences < 0 || c.MaxPerPeer < 0 {
		return &Error{Code: BadConfig, Err: errors.New("an endpoint needs a store, and times and counts of 0 or more")}
	}
	if c.Expires == 0 {
		c.Expires = defaultExpires
	}
	if c.MaxSequences == 0 {
		c.MaxSequences = defaultMaxSequences
	}
	if c.MaxPerPeer == 0 {
		c.MaxPerPeer = max(c.MaxSequences/2, 1)
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Transactional == nil {
		c.Transactional = func(string) bool { return false }
	}
	if c.Guaranteed == nil {
		c.Guaranteed = func(context.Context) bool { return false }
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
