package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// loggable returns a URL as logs show it: without query and user, which may be secret.
func loggable(u *url.URL) string { return negotiate.Origin(u) + negotiate.PathOf(u) }

// PlainPrefix begins the URIs of the entries which record that an origin speaks plain SOAP, and
// why.
const PlainPrefix = xmlns.HHFRNegotiation + ":plain:"

// plainURI returns the URI under which the store records that a peer speaks plain SOAP.
func plainURI(u *url.URL) string { return PlainPrefix + negotiate.Origin(u) }

// recall returns the reason for plain SOAP that is remembered for the peer, nil if there is none.
func (d *Dialer) recall(ctx context.Context, u *url.URL) error {
	if d.cfg.RememberFor < 0 {
		return nil
	}
	entry, err := lookUp(ctx, d.cfg.Store, plainURI(u))
	if entry == nil {
		return err
	}
	return &refusal{err: fmt.Errorf("remembered: %s", entry.Value), remembered: true}
}

func (d *Dialer) remember(ctx context.Context, u *url.URL, why error) {
	if d.cfg.RememberFor < 0 {
		return
	}
	if _, err := d.cfg.Store.Put(ctx, plainURI(u), []byte(why.Error()),
		ctxstore.PutOptions{TTL: d.cfg.RememberFor}); err != nil {
		d.cfg.Log.Warn("plain SOAP not remembered", "url", loggable(u), "err", err)
	}
}

// Recollection is what a store remembers of a service, from earlier sessions.
type Recollection struct {
	// Met is the session that can be joined again, once; nil: there is none.
	Met *negotiate.Facts
	// Plain is why plain SOAP is spoken without asking; empty: no reason is remembered.
	Plain string
}

// Remembered returns what a store remembers of the service at an http or https URL. It changes
// nothing in the store. Errors: BadConfig for a URL that is none, and those of the store.
func Remembered(ctx context.Context, store ctxstore.Store, rawURL string) (m Recollection, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return m, coded(negotiate.BadConfig, err)
	}
	c, _, err := metBefore(ctx, store, u)
	if err != nil {
		return m, err
	}
	if c != nil {
		m.Met = &c.Facts
	}
	entry, err := lookUp(ctx, store, plainURI(u))
	if entry != nil {
		m.Plain = string(entry.Value)
	}
	return m, err
}

// MetPrefix begins the URIs of the entries that record how the session with an origin can be joined
// again. They are secret: each has a token.
const MetPrefix = xmlns.HHFRNegotiation + ":met:"

func metURI(u *url.URL) string { return MetPrefix + negotiate.Origin(u) }

// metBefore returns the session with a peer that can be joined again, and the revision of its
// entry; nil: there is none.
func metBefore(ctx context.Context, store ctxstore.Store, u *url.URL) (*negotiate.Context, uint64, error) {
	entry, err := lookUp(ctx, store, metURI(u))
	if entry == nil {
		return nil, 0, err
	}
	c, _ := negotiate.ParseContext(entry.Value)
	return c, entry.Revision, nil
}

// lookUp returns an entry of a store; nil: there is none.
func lookUp(ctx context.Context, store ctxstore.Store, uri string) (*ctxstore.Entry, error) {
	entry, err := store.Get(ctx, uri)
	switch {
	case errors.Is(err, ctxstore.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &entry, nil
}
