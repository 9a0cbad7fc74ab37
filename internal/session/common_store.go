package session

import (
	"context"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// referring returns a transport of plain SOAP with references, over another one.
func (r *runner) referring(base http.RoundTripper) http.RoundTripper {
	if r.cfg.Common == nil {
		return base
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &plainTransport{base, r.referrer.Load, &r.taken}
}

// adopt has plain SOAP refer to what a negotiation agreed on, and tells third parties of that.
func (r *runner) adopt(n *negotiation) {
	facts := n.agreed.Facts
	if n.referrer == nil && facts != nil && facts.Common != nil && r.cfg.Common != nil { // it was met before
		lent := r.dialer.lent(r.ctx, n.url)
		if *lent.Common() != *facts.Common {
			lent = nil
		}
		n.referrer = r.dialer.referrer(facts.Common, lent, facts.Expires.Sub(r.cfg.Clock.Now()))
	}
	if n.referrer == nil {
		return
	}
	if before := r.referrer.Swap(n.referrer); before != nil && before != n.referrer {
		before.Close()
	}
	if facts != nil {
		r.wait.Go(func() { r.cfg.publish(facts) })
	}
}

// publishing bounds the writing of what was agreed on: Close waits for it.
const publishing = 5 * time.Second

// publish writes what was agreed on to the common store.
func (c *Config) publish(facts *negotiate.Facts) {
	ctx, cancel := context.WithTimeout(context.Background(), publishing)
	defer cancel()
	entries, err := facts.PublicEntries()
	for _, e := range entries {
		if err == nil {
			_, err = c.Common.Store.Put(ctx, e.URI, e.Value,
				ctxstore.PutOptions{TTL: c.archived(max(facts.Expires.Sub(c.Clock.Now()), time.Second))})
		}
	}
	if err != nil {
		c.Log.Warn("what was agreed on is not in the common context store", "store", c.Common.URL, "err", err)
	}
}

// Referrer returns what makes references in plain SOAP; nil: none were agreed on.
func (r *runner) Referrer() *unchanging.Referrer { return r.referrer.Load() }
