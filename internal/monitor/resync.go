package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/browser"
)

// resyncInterval is the least time between two resyncs that are asked for over HTTP.
const resyncInterval = 10 * time.Second

// Resynced is the answer to a POST of /status.
type Resynced struct {
	Version int `json:"version"` // 1
	Streams int `json:"streams"` // on which a sync is sent
}

// resync has a sync sent on every stream. It costs bytes on thin links: so requests come from this
// machine, name it by an address or name of its own, and are none of a page.
func (m *Monitor) resync(w http.ResponseWriter, r *http.Request) {
	if !isLocal(r) || browser.IsForeign(r) {
		http.Error(w, "syncs are for programs of this machine only", http.StatusForbidden)
		return
	}
	streams, wait := m.syncNow()
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		http.Error(w, fmt.Sprintf("one in %v", resyncInterval), http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(Resynced{1, streams}) // a client that went away
}

// syncNow has a sync sent on every stream, unless that was so a moment ago; wait is until when.
func (m *Monitor) syncNow() (streams int, wait time.Duration) {
	m.resyncing.Lock()
	defer m.resyncing.Unlock()
	now := time.Now()
	if wait = m.resynced.Add(resyncInterval).Sub(now); wait > 0 {
		return 0, wait
	}
	m.resynced = now
	return m.sync(), 0
}

// syncSoon has a sync sent on every stream as soon as syncNow does so, unless ctx is done before.
func (m *Monitor) syncSoon(ctx context.Context) {
	if _, wait := m.syncNow(); wait > 0 {
		again := time.AfterFunc(wait, func() { m.syncSoon(ctx) })
		context.AfterFunc(ctx, func() { again.Stop() })
	}
}

// isLocal reports whether a request comes from this machine, and names it by an address or name of
// its own: no name that a page made up.
func isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && browser.IsNamed(r, netip.Addr.IsLoopback)
}
