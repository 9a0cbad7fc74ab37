package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// serverOptions are the flags that serve and proxy have in common.
type serverOptions struct {
	listen, tcp, advertise, context, output string
	store                                   storeFlags
	metrics                                 metricsOptions
	own                                     serverTLS
	common                                  commonOptions
	record                                  recordOptions
	calls                                   accessLogOptions
	sync                                    size
	flushDelay                              time.Duration
}

// openedServer is what serve and proxy have open while they run.
type openedServer struct {
	manager   *background
	hangups   *hangups
	seen      *metricsCounters
	calls     *accessLog // nil: none
	keys      *os.File   // of SSLKEYLOGFILE; nil: none
	access    *access
	secure    *tls.Config // of the access; nil: cleartext
	store     ctxstore.Store
	storeName string
	common    *unchanging.CommonStore // nil: none
	contexts  http.Handler            // nil: none
	recording *recording

	closers []func() error // of what is open
}

// serverKind is how one server differs from another.
type serverKind struct {
	command   string
	live      bool     // a terminal has a line with its counters
	addresses []string // of calls, whose ports --metrics must not have
	// bind opens the listeners by [openedServer.listen].
	bind func(ctx context.Context, s *openedServer) error
}

// openServer opens what a server works with: its metrics, its keys and certificates, its stores,
// its listeners, and last the recording, since a port in use must not cost one. The caller closes
// the result, when what it has started with it is closed.
func openServer(
	ctx context.Context, env Env, g *global, o *serverOptions, kind serverKind,
) (_ *openedServer, err error) {
	s := &openedServer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.manager, err = newBackground(g.logger()); err != nil {
		return nil, err
	}
	s.closes(func() error { s.manager.stopping(); return nil })
	s.hangups = hearHangups()
	s.closes(func() error { s.hangups.stop(); return nil })
	if s.seen, err = countersOf(ctx, env, g, o.metrics, kind.live, kind.addresses...); err != nil {
		return nil, err
	}
	s.closes(s.seen.close)
	if s.calls, err = o.calls.open(env, s.seen.Meter, g.logger()); err != nil {
		return nil, err
	}
	s.closes(s.calls.close)
	if err := s.openAccess(o); err != nil {
		return nil, err
	}
	if err := s.openStores(ctx, g, kind.command, o); err != nil {
		return nil, err
	}
	if err := kind.bind(ctx, s); err != nil {
		return nil, err
	}
	if s.recording, err = o.record.open(s.store, g.logger()); err != nil {
		return nil, err
	}
	s.closes(s.recording.close)
	return s, nil
}

// openAccess reads who the server is, and whom it lets in.
func (s *openedServer) openAccess(o *serverOptions) (err error) {
	if s.keys, err = keyLog(); err != nil {
		return err
	}
	s.closes(func() error { _ = s.keys.Close(); return nil }) // nil is allowed
	s.access, err = openAccess(accessFlags{
		tls: &o.own, keys: s.keys, contextFlag: "--context", contexts: o.context,
	})
	if err == nil {
		s.secure = s.access.config()
	}
	return err
}

// openStores opens the stores, and the context service.
func (s *openedServer) openStores(ctx context.Context, g *global, command string, o *serverOptions) (err error) {
	if s.store, s.storeName, err = o.store.openServerStore(ctx, g, command, o.listen); err != nil {
		return err
	}
	s.closes(func() error { _ = s.store.Close(); return nil })
	var closeCommon func()
	if s.common, closeCommon, err = o.common.open(ctx, g, &o.store); err != nil {
		return err
	}
	s.closes(func() error { closeCommon(); return nil })
	if o.context != "" {
		s.contexts, err = newContextService(s.store, s.access, false, g.logger())
	}
	return err
}

// closes has [openedServer.close] call f, before what it was to call so far.
func (s *openedServer) closes(f func() error) { s.closers = append(s.closers, f) }

// listen keeps a listener, which may be nil, until the server is closed.
func (s *openedServer) listen(l net.Listener, err error) (net.Listener, error) {
	if l != nil && err == nil {
		s.closes(func() error { _ = l.Close(); return nil })
	}
	return l, err
}

// close closes all, in the reverse order of opening.
func (s *openedServer) close() (err error) {
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		f := s.closers[last]
		s.closers = s.closers[:last]
		err = errors.Join(err, f())
	}
	return err
}
