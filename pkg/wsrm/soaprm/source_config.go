package soaprm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// SourceConfig is what a [SequenceSource] works by. It is copied.
type SourceConfig struct {
	// URL is that of the service; required.
	URL string
	// Version is that of the sequence; required.
	Version Protocol
	// Addressing is the namespace of WS-Addressing; empty: that of the sequence in the store. For a
	// new one [Protocol.Addressing], and the other if the service refuses that.
	Addressing string
	// SOAP is the version of all messages; None: that of the sequence in the store, 1.1 for a new
	// one.
	SOAP soap.Version
	// Store keeps the sequence; required. Only one process can send to the same service from it at
	// a time, others get Unstored. What was accepted is sent over crashes as far as the store
	// persists.
	Store ctxstore.Store
	// Client makes the requests; nil means [http.DefaultClient]. Fields go with each of them.
	Client *http.Client
	Fields http.Header
	// Resend is how long an answer is waited for before a message is sent again, twice as long each
	// time, up to MaxResend; 0: 2 seconds, and 30.
	Resend, MaxResend time.Duration
	// GiveUp is how long nothing may be heard of the service, until messages are reported as
	// Unanswered; 0: 2 minutes. The store still has them.
	GiveUp time.Duration
	// AckDelay is how long the acknowledgement of a reply waits for a request to ride on; 0: 1
	// second.
	AckDelay time.Duration
	// Expires is how long the sequence may last; 0: the service decides.
	Expires time.Duration
	// Callback takes replies and acknowledgements; nil: they come on the connections of requests.
	// The store keeps where they come to for as long as it has the sequence.
	Callback *Callback
	// Poll is how often the service is asked for replies and acknowledgements while some are
	// awaited (WS-MakeConnection 1.1), for a source that nobody can reach; 0: they come as Callback
	// says.
	Poll time.Duration
	// Handlers are those of further header blocks, behind those of WS-Addressing and
	// WS-ReliableMessaging.
	Handlers headers.Chain
	// Late gets what came of messages that an earlier process sent, by their numbers. nil: replies
	// to them are dropped.
	Late func(number uint64, reply *ReceivedReply, err error)
	// Clock is the clock; nil means the real one. Log hears what went wrong; nil: nobody.
	Clock clock.Clock
	Log   *slog.Logger
}

func (c *SourceConfig) withDefaults() error {
	bad := func(format string, args ...any) error {
		return &Error{Code: BadConfig, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case c.URL == "" || c.Store == nil:
		return bad("a source needs a URL and a store")
	case c.Version != V10 && c.Version != V11:
		return bad("version %q", c.Version)
	case c.Callback != nil && c.Poll > 0:
		return bad("replies come to a callback or by polling, not both")
	case c.Version == V10 && c.Poll > 0:
		return bad("polling goes with 1.1 only")
	case c.Poll < 0 || c.Resend < 0 || c.MaxResend < 0 || c.GiveUp < 0 || c.AckDelay < 0 || c.Expires < 0:
		return bad("a time below 0")
	}
	if c.Addressing == "" {
		c.Addressing = c.Version.Addressing()
	}
	if c.Addressing != addressing.V200408 && c.Addressing != addressing.V200508 {
		return bad("WS-Addressing %q", c.Addressing)
	}
	for _, d := range []struct {
		of *time.Duration
		to time.Duration
	}{
		{&c.Resend, 2 * time.Second}, {&c.MaxResend, 30 * time.Second}, {&c.GiveUp, 2 * time.Minute},
		{&c.AckDelay, time.Second},
	} {
		if *d.of == 0 {
			*d.of = d.to
		}
	}
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// recordURI is where the record of a source lies: one for each service, version and addressing.
func (c *SourceConfig) recordURI() string {
	sum := sha256.Sum256([]byte(c.URL + "\n" + string(c.Version) + "\n" + c.Addressing))
	return sourcePrefix + hex.EncodeToString(sum[:16])
}

// otherAddressing is the configuration with the other WS-Addressing.
func (c SourceConfig) otherAddressing() SourceConfig {
	if c.Addressing == addressing.V200508 {
		c.Addressing = addressing.V200408
	} else {
		c.Addressing = addressing.V200508
	}
	return c
}

// isStored reports whether the store has a sequence to the service.
func (c SourceConfig) isStored(ctx context.Context) (bool, error) {
	is, err := ctxstore.Has(ctx, c.Store, c.recordURI())
	return is, unstored(err)
}

// Unfinished reports in which version a store has a sequence to the service at a URL, with either
// WS-Addressing; empty: it has none.
func Unfinished(ctx context.Context, store ctxstore.Store, url string) (Protocol, error) {
	for _, v := range []Protocol{V11, V10} {
		c := SourceConfig{URL: url, Version: v, Addressing: v.Addressing(), Store: store}
		for _, c := range []SourceConfig{c, c.otherAddressing()} {
			if is, err := c.isStored(ctx); is || err != nil {
				return v, err
			}
		}
	}
	return "", nil
}
