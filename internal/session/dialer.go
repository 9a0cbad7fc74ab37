package session

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Dialer opens sessions. It is safe for concurrent use.
type Dialer struct{ cfg Config }

// NewDialer checks the configuration. Errors: BadConfig.
func NewDialer(cfg Config) (*Dialer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Dialer{cfg}, nil
}

// assurance returns the URI of the configured assurance.
func (d *Dialer) assurance() string {
	return negotiate.AssuranceURI(max(d.cfg.Assurance, wsrm.AtMostOnce), d.cfg.Ordered)
}

// undecided reports whether an answer says that its sender cannot decide now, and how long it asks
// to wait (RFC 9110, section 10.2.3); 0: it does not say.
func (d *Dialer) undecided(resp *http.Response) (is bool, after time.Duration) {
	if resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		return false, 0
	}
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return true, max(time.Duration(seconds)*time.Second, 1)
	}
	if at, err := http.ParseTime(value); err == nil {
		return true, max(at.Sub(d.cfg.Clock.Now()), 1)
	}
	return true, 0
}

// lent returns what earlier sessions with the service at a URL have put into the common store.
func (d *Dialer) lent(ctx context.Context, u *url.URL) *unchanging.Lent {
	return unchanging.OpenLent(ctx, d.cfg.Store, negotiate.Origin(u)+negotiate.PathOf(u), d.cfg.Common.URL, d.cfg.Clock)
}

func (d *Dialer) referrer(
	common *negotiate.Common, lent *unchanging.Lent, lifetime time.Duration,
) *unchanging.Referrer {
	return unchanging.NewReferrer(unchanging.ReferrerConfig{
		CommonStore: *d.cfg.Common, Common: common, Lent: lent, Blocks: d.cfg.Headers,
		Lifetime: d.cfg.archived(lifetime),
		Clock:    d.cfg.Clock, Log: d.cfg.Log,
	})
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, coded(negotiate.BadConfig, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, negotiate.BadConfigf("%q is no http or https URL", u.Redacted())
	}
	u.Fragment = ""
	return u, nil
}

// suitsMode returns an error if the mode cannot ask for what the configuration needs.
func (c *Config) suitsMode(u *url.URL) error {
	if needs := c.needsOffer(u.Scheme == "https"); c.Mode == negotiate.FirstCall && needs != "" {
		return negotiate.BadConfigf("a first call cannot ask for %s; mode %s or %s can", needs, negotiate.Auto,
			negotiate.Explicit)
	}
	if needs := c.undeclarable(); c.Mode == negotiate.Declared && needs != "" {
		return negotiate.BadConfigf("a description cannot declare %s; mode %s or %s can", needs, negotiate.Auto,
			negotiate.Explicit)
	}
	return nil
}
