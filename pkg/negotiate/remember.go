package negotiate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Origin is scheme, host and port of an http or https URL, as [Facts].Origin has them.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// loggable is a URL as logs show it: without query and user, which may be secret.
func loggable(u *url.URL) string { return Origin(u) + pathOf(u) }

// PlainPrefix begins the URIs of the entries that say of an origin that it speaks plain SOAP, and
// why.
const PlainPrefix = xmlns.HHFRNegotiation + ":plain:"

// plainURI is where the store keeps that an end speaks plain SOAP.
func plainURI(u *url.URL) string { return PlainPrefix + Origin(u) }

// recall gives the reason for plain SOAP that is remembered of the end, nil if there is none.
func (d *Dialer) recall(ctx context.Context, u *url.URL) error {
	if d.cfg.RememberFor < 0 {
		return nil
	}
	entry, err := d.cfg.Store.Get(ctx, plainURI(u))
	switch {
	case err == nil:
		return &refusal{err: fmt.Errorf("remembered: %s", entry.Value), remembered: true}
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		return nil
	}
	return err
}

func (d *Dialer) remember(ctx context.Context, u *url.URL, why error) {
	if d.cfg.RememberFor < 0 {
		return
	}
	if _, err := d.cfg.Store.Put(ctx, plainURI(u), []byte(why.Error()), ctxstore.PutOptions{TTL: d.cfg.RememberFor}); err != nil {
		d.cfg.Log.Warn("plain SOAP not remembered", "url", loggable(u), "err", err)
	}
}
