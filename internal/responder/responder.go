// Package responder is the responder's side of HHFR, the counterpart of package session. A
// [Responder] answers offers, upgrades connections and runs their streams in front of SOAP
// services. A [Handler] does so for unchanged servers of net/http.
package responder

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Responder answers offers ([Responder.Handler]) and accepts streams ([Responder.ServeStreams]).
// All methods are safe for concurrent use.
type Responder struct {
	cfg Config

	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	registry *registry
	restorer *unchanging.Restorer // nil: there is no common store
	conns    accept.Room
	beyond   accept.Refusals

	mu      sync.Mutex
	closed  bool
	ended   []endedSession // oldest first
	closers map[closer]struct{}
	extends clock.Timer // nil: no session was joined

	endedWeight int // weight of them all

	sequences sequences

	storeFails atomic.Bool // the log says so
}

// New checks the configuration. The caller must call Close in the end. Errors: BadConfig.
func New(cfg Config) (*Responder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Responder{cfg: cfg, registry: newRegistry(&cfg), closers: map[closer]struct{}{}}
	r.restorer = cfg.Common.Restorer(cfg.Store, cfg.Archive, cfg.Clock, cfg.Log)
	r.conns.Max, r.conns.PerPeer, r.conns.Log = cfg.MaxSessions, cfg.MaxPerPeer, cfg.Log
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}
