// Package server has what serve and proxy have in common: flags, and what is open while they run.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/service"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// ServerOptions are the flags that serve and proxy have in common.
type ServerOptions struct {
	Listen, TCP, Advertise, Context, Output string
	Store                                   stores.StoreOptions
	Metrics                                 metrics.MetricsOptions
	Own                                     trust.ServerTLS
	Common                                  stores.CommonOptions
	Record                                  recording.RecordOptions
	Calls                                   AccessLogOptions
	Sync                                    flags.Size
	FlushDelay                              time.Duration
}

// Flags declares those of them whose help texts are the same; calls: the server makes calls, too.
func (o *ServerOptions) Flags(f *pflag.FlagSet, calls bool) {
	f.StringVar(&o.Advertise, "advertise", "", "host that answers name for streams, if it is not that of the URL")
	f.StringVar(&o.Context, "context", "", "serve the store as a context service at "+ContextPath+" to these clients: "+
		"loopback, certificate, bearer:FILE or everybody; empty: to none")
	o.Store.ServerFlags(f)
	o.Common.Flags(f, calls)
	o.Own.Flags(f)
	o.Calls.flags(f)
	o.Metrics.Flags(f)
	flags.Sync(f, &o.Sync)
	flags.FlushDelay(f, &o.FlushDelay)
}

// OpenedServer is what serve and proxy have open while they run.
type OpenedServer struct {
	Manager   *service.Background
	Hangups   *service.Hangups
	Seen      *metrics.ServerCounters
	Calls     *accessLog // nil: none
	Keys      *os.File   // of SSLKEYLOGFILE; nil: none
	Access    *trust.Access
	Secure    *tls.Config // of the access; nil: cleartext
	Store     ctxstore.Store
	StoreName string
	Common    *unchanging.CommonStore // nil: none
	Contexts  http.Handler            // nil: none
	Recording *recording.TrafficRecording

	closers []func() error // of what is open
}

// ServerKind is how one server differs from another.
type ServerKind struct {
	Command   string
	Live      bool     // a terminal has a line with its counters
	Addresses []string // of calls, whose ports --metrics must not have
	// bind opens the listeners by [OpenedServer.Keep].
	Bind func(ctx context.Context, s *OpenedServer) error
}

// Open opens what a server works with: its metrics, its keys and certificates, its stores,
// its listeners, and last the recording, since a port in use must not cost one. The caller closes
// the result, when what it has started with it is closed.
func Open(
	ctx context.Context, g *command.Global, o *ServerOptions, kind ServerKind,
) (_ *OpenedServer, err error) {
	s := &OpenedServer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Manager, err = service.New(g.Logger()); err != nil {
		return nil, err
	}
	s.closes(func() error { s.Manager.Stopping(); return nil })
	s.Hangups = service.HearHangups()
	s.closes(func() error { s.Hangups.Stop(); return nil })
	if s.Seen, err = metrics.Open(ctx, g, o.Metrics, kind.Live, kind.Addresses...); err != nil {
		return nil, err
	}
	s.closes(s.Seen.Close)
	if s.Calls, err = o.Calls.Open(g, s.Seen.Meter, g.Logger()); err != nil {
		return nil, err
	}
	s.closes(s.Calls.Close)
	if err := s.openAccess(o); err != nil {
		return nil, err
	}
	if err := s.openStores(ctx, g, kind.Command, o); err != nil {
		return nil, err
	}
	if err := kind.Bind(ctx, s); err != nil {
		return nil, err
	}
	if s.Recording, err = o.Record.Open(s.Store, g.Logger()); err != nil {
		return nil, err
	}
	s.closes(s.Recording.Close)
	return s, nil
}

// openAccess reads who the server is, and whom it lets in.
func (s *OpenedServer) openAccess(o *ServerOptions) (err error) {
	if s.Keys, err = trust.KeyLog(); err != nil {
		return err
	}
	s.closes(func() error { _ = s.Keys.Close(); return nil }) // nil is allowed
	s.Access, err = trust.OpenAccess(trust.AccessFlags{
		TLS: &o.Own, Keys: s.Keys, ContextFlag: "--context", Contexts: o.Context,
	})
	if err == nil {
		s.Secure = s.Access.Config()
	}
	return err
}

// openStores opens the stores, and the context service.
func (s *OpenedServer) openStores(ctx context.Context, g *command.Global, command string,
	o *ServerOptions) (err error) {
	if s.Store, s.StoreName, err = o.Store.OpenServer(ctx, g, command, o.Listen); err != nil {
		return err
	}
	s.closes(func() error { _ = s.Store.Close(); return nil })
	var closeCommon func()
	if s.Common, closeCommon, err = o.Common.Open(ctx, g, &o.Store); err != nil {
		return err
	}
	s.closes(func() error { closeCommon(); return nil })
	if o.Context != "" {
		s.Contexts, err = trust.NewContextService(s.Store, s.Access, false, g.Logger())
	}
	return err
}

// closes has [OpenedServer.Close] call f, before what it was to call so far.
func (s *OpenedServer) closes(f func() error) { s.closers = append(s.closers, f) }

// Keep keeps a listener, which may be nil, until the server is closed.
func (s *OpenedServer) Keep(l net.Listener, err error) (net.Listener, error) {
	if l != nil && err == nil {
		s.closes(func() error { _ = l.Close(); return nil })
	}
	return l, err
}

// Close closes all, in the reverse order of opening.
func (s *OpenedServer) Close() (err error) {
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		f := s.closers[last]
		s.closers = s.closers[:last]
		err = errors.Join(err, f())
	}
	return err
}
