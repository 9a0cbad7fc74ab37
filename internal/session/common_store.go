package session

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// keptFragments is how long fragments are kept where no other lifetime is asked for: as long as
// responders keep sessions.
const keptFragments = 24 * time.Hour

// errAgreedPlain is why a session has no stream although its peer agreed.
var errAgreedPlain = errors.New("agreed on, with references to the common context store")

// offerCommon offers the common context store, with the unchanging headers in it. A store that
// cannot be used is not offered.
func (n *negotiation) offerCommon(ctx context.Context, offer *negotiate.Offer) {
	cfg := &n.dialer.cfg
	if cfg.Common == nil {
		return
	}
	lent := n.dialer.lent(ctx, n.url)
	common := lent.Common()
	r := n.dialer.referrer(common, lent, cmp.Or(cfg.Lifetime, keptFragments))
	references, err := r.Keep(ctx, cfg.Headers)
	if err != nil {
		r.Close()
		cfg.Log.Warn("the common context store is not offered: it cannot be used", "store", cfg.Common.URL,
			"err", err)
		n.withoutCommon(offer)
		return
	}
	n.referrer, offer.Common, offer.References = r, common, references
	if len(references) > 0 {
		offer.Headers = nil
	}
}

// withoutCommon makes an offer for which no common store is needed.
func (n *negotiation) withoutCommon(offer *negotiate.Offer) {
	offer.Common, offer.References, offer.Headers = nil, nil, n.dialer.cfg.Headers
	offer.Transports = n.dialer.cfg.streams(n.url.Scheme == "https")
}

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

// dropReferrer ends the referrer of an offer whose store was not agreed on.
func (n *negotiation) dropReferrer() {
	if n.referrer != nil {
		n.referrer.Close()
		n.referrer = nil
	}
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

// agreePlain takes an answer that selects plain SOAP.
func (n *negotiation) agreePlain(ctx context.Context, facts *negotiate.Facts) error {
	if n.outbox != nil {
		return errors.New("plain SOAP was agreed on, which promises no assurance")
	}
	if err := n.keepFacts(ctx, facts); err != nil {
		return err
	}
	n.agreed.Facts = facts
	return errAgreedPlain
}

// keepScope stores which session has the key of the fragments that messages refer to.
func (n *negotiation) keepScope(ctx context.Context, facts *negotiate.Facts, ttl time.Duration) error {
	if facts.Common == nil {
		return nil
	}
	return unchanging.KeepScope(ctx, n.dialer.cfg.Store, facts, n.dialer.cfg.archived(ttl))
}

// adopt has plain SOAP refer to what a negotiation agreed on, and tells third parties of that.
func (s *Session) adopt(n *negotiation) {
	facts := n.agreed.Facts
	if n.referrer == nil && facts != nil && facts.Common != nil && s.cfg.Common != nil { // it was met before
		lent := s.dialer.lent(s.ctx, n.url)
		if *lent.Common() != *facts.Common {
			lent = nil
		}
		n.referrer = s.dialer.referrer(facts.Common, lent, facts.Expires.Sub(s.cfg.Clock.Now()))
	}
	if n.referrer == nil {
		return
	}
	if before := s.referrer.Swap(n.referrer); before != nil && before != n.referrer {
		before.Close()
	}
	if facts != nil {
		s.wait.Go(func() { s.publish(facts) })
	}
}

// publishing bounds the writing of what was agreed on: Close waits for it.
const publishing = 5 * time.Second

// publish writes what was agreed on to the common store.
func (s *Session) publish(facts *negotiate.Facts) {
	ctx, cancel := context.WithTimeout(context.Background(), publishing)
	defer cancel()
	entries, err := facts.PublicEntries()
	for _, e := range entries {
		if err == nil {
			_, err = s.cfg.Common.Store.Put(ctx, e.URI, e.Value,
				ctxstore.PutOptions{TTL: s.cfg.archived(max(facts.Expires.Sub(s.cfg.Clock.Now()), time.Second))})
		}
	}
	if err != nil {
		s.cfg.Log.Warn("what was agreed on is not in the common context store", "store", s.cfg.Common.URL, "err", err)
	}
}

// Referrer returns what makes references in plain SOAP; nil: none were agreed on.
func (s *Session) Referrer() *unchanging.Referrer { return s.referrer.Load() }

// referring returns a transport of plain SOAP with references, over another one.
func (s *Session) referring(base http.RoundTripper) http.RoundTripper {
	if s.cfg.Common == nil {
		return base
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &plainTransport{base, s.referrer.Load, &s.taken}
}
