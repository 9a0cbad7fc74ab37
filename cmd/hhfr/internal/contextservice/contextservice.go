// Package contextservice serves the context service of a store at a listener.
package contextservice

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

const (
	// headerTime, bodyTime and idleTime bound how long clients of the context
	// service may take: a value of 16 MiB comes within 10 minutes at 300 kbit/s.
	headerTime = 30 * time.Second
	bodyTime   = 10 * time.Minute
	idleTime   = 2 * time.Minute
	// MaxConns is how many connections it has at once, of which one peer has half by default.
	MaxConns = 1024
	// grace is how long requests in progress may take after the first Ctrl-C.
	grace = 5 * time.Second
)

// Serve serves until ctx is done, and then what is in progress: connections of one peer up to
// perPeer, in TLS if secure is given. ready is called once it does.
func Serve(
	ctx context.Context, g *command.Global, l net.Listener, perPeer int, secure *tls.Config,
	service *wscontext.ContextService, ready func() error,
) error {
	room := &accept.Room{Max: MaxConns, PerPeer: perPeer, Log: g.Logger()}
	l = accept.Limit(accept.Steady(l, clock.Real(), g.Logger()), room, secure)
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{
		Handler: service, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime,
		WriteTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(g.Logger().Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(service.Drain)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	if err := ready(); err != nil {
		err = errors.Join(err, server.Close())
		if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	g.Note("shutting down")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = server.Close()
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
