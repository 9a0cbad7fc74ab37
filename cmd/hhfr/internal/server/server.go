// Package server is a command as a server of calls: its flags, and what it has open while it runs.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/accesslog"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/service"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ServerOptions are the flags that serve and proxy have in common.
type ServerOptions struct {
	Listen, TCP, Advertise, Context, Output string
	Store                                   stores.StoreOptions
	Metrics                                 metrics.MetricsOptions
	Own                                     trust.ServerTLS
	Common                                  stores.CommonOptions
	Record                                  recording.RecordOptions
	Calls                                   accesslog.AccessLogOptions
	Sync                                    flags.Size
	FlushDelay                              time.Duration
}

// Flags declares those of them whose help texts are the same. at is where the server listens by
// default; calls: it makes calls, too.
func (o *ServerOptions) Flags(f *pflag.FlagSet, at string, calls bool) {
	listen.Flag(f, &o.Listen, at)
	f.StringVar(&o.TCP, "tcp", "", "another address for streams over TCP, in TLS with --cert; none: no such streams")
	f.StringVar(&o.Advertise, "advertise", "", "host that answers name for streams, if it is not that of the URL")
	f.StringVar(&o.Context, "context", "", "serve the store as a context service at "+ContextPath+" to these clients: "+
		"loopback, certificate, bearer:FILE or everybody; empty: to none")
	o.Store.ServerFlags(f)
	o.Common.Flags(f, calls)
	o.Own.Flags(f)
	o.Calls.Flags(f)
	o.Metrics.Flags(f)
	flags.Sync(f, &o.Sync)
	flags.FlushDelay(f, &o.FlushDelay)
}

// Stream is the configuration of streams.
func (o *ServerOptions) Stream() streamer.Config {
	return streamer.Config{SyncBytes: int64(o.Sync), FlushDelay: o.FlushDelay}
}

// CheckFiles checks what the server of this command would open, without opening or writing
// anything: the names of stores and of files that are written, and what stores are opened with. It
// returns the name of the store.
func (o *ServerOptions) CheckFiles(g *command.Global, name string) (store string, err error) {
	store = cmp.Or(o.Store.Spec, stores.DefaultStore(name, o.Listen), stores.MemoryStore)
	err = cmp.Or(o.Record.Check(), o.Calls.Check(), o.Store.Check(g.System, store), o.Common.Check())
	if err != nil {
		return "", err
	}
	for flag, file := range map[string]string{"--record": o.Record.Name, "--access-log": o.Calls.File} {
		if file == "" || file == "-" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil {
			return "", fmt.Errorf("%s: %w", flag, err)
		} else if !info.IsDir() {
			return "", fmt.Errorf("%s: %s is no folder", flag, filepath.Dir(file))
		}
	}
	return store, nil
}

// OpenedServer is what serve and proxy have open while they run.
type OpenedServer struct {
	Manager   *service.Background
	Hangups   *service.Hangups
	Seen      *metrics.ServerCounters
	Calls     *accesslog.AccessLog // nil: none
	Keys      *trust.KeyWriter     // nil: none
	Access    *trust.Access
	Secure    *tls.Config // of the access; nil: cleartext
	Store     ctxstore.Store
	StoreName string
	Common    *unchanging.CommonStore // nil: none
	Contexts  http.Handler            // nil: none
	Recording *recording.TrafficRecording
	Book      *binary.Book // the shapes of all streams

	command.Closers
}

// Coders make the coders of streams.
func (s *OpenedServer) Coders() coders.Func { return coders.OfBook(s.Book) }

// ServerKind is how one server differs from another.
type ServerKind struct {
	Command   string
	Live      bool     // a terminal has a line with its counters
	Frugal    bool     // garbage is collected early
	Conns     int      // connections that it may have at once
	Without   uint64   // stages to leave out of streams
	Addresses []string // of calls, whose ports --metrics must not have
	// Bind opens the listeners by [OpenedServer.Keep].
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
	s.Ends(s.Manager.Stopping)
	s.Hangups = service.HearHangups()
	s.Ends(s.Hangups.Stop)
	if s.Seen, err = metrics.Open(ctx, g, o.Metrics, kind.Live, kind.Addresses...); err != nil {
		return nil, err
	}
	s.Closes(s.Seen.Close)
	if s.Calls, err = o.Calls.Open(g, s.Seen.Meter, g.Logger()); err != nil {
		return nil, err
	}
	s.Closes(s.Calls.Close)
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
	s.Closes(s.Recording.Close)
	s.Recording.Tapped(s.Seen.Tap())
	s.Keys.Record(s.Recording.Secrets())
	s.Ends(service.Collect(kind.Frugal))
	service.CheckDescriptors(g.Logger(), kind.Conns)
	s.Book = binary.NewBook(ctxstore.Shapes{Store: s.Store})
	s.Book.Log, s.Book.Without = g.Logger(), kind.Without
	return s, nil
}

// openAccess reads who the server is, and whom it lets in.
func (s *OpenedServer) openAccess(o *ServerOptions) (err error) {
	if s.Keys, err = trust.OpenKeyWriter(o.Record.Keys); err != nil {
		return err
	}
	s.Ends(func() { _ = s.Keys.Close() })
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
	s.Ends(func() { _ = s.Store.Close() })
	var closeCommon func()
	if s.Common, closeCommon, err = o.Common.Open(ctx, g, &o.Store); err != nil {
		return err
	}
	s.Ends(closeCommon)
	if o.Context != "" {
		s.Contexts, err = trust.NewContextService(s.Store, s.Access, false, g.Logger())
	}
	return err
}

// Keep keeps a listener, which may be nil, until the server is closed.
func (s *OpenedServer) Keep(l net.Listener, err error) (net.Listener, error) {
	if l != nil && err == nil {
		s.Ends(func() { _ = l.Close() })
	}
	return l, err
}
