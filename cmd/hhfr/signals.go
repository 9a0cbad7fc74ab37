package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signalled is why an interrupted command ends.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return s.String() + " signal received" }

// Unwrap makes it a canceled context.
func (signalled) Unwrap() error { return context.Canceled }

// doneCode is the exit code of a command without an error. Servers, and other commands that run
// until a signal, shut down in order on either signal: SIGTERM is addressed to them, Ctrl-C to the
// shell.
func doneCode(ctx context.Context) int {
	var s signalled
	if errors.As(context.Cause(ctx), &s) && s.Signal == os.Interrupt {
		return exitInterrupted
	}
	return exitDone
}

// onHangup makes a server continue when its terminal is closed (SIGHUP), and calls reload for each
// SIGHUP, until the returned function is called; nil: nothing is reloaded.
func onHangup(logger *slog.Logger, reload func()) (stop func()) {
	hangups, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	var heard sync.WaitGroup
	heard.Go(func() {
		for {
			select {
			case <-hangups:
			case <-over:
				return
			}
			if reload == nil {
				logger.Info("SIGHUP ignored: nothing is reloaded")
				return
			}
			reload()
		}
	})
	return func() {
		signal.Ignore(syscall.SIGHUP) // a signal during the shutdown must not kill the server
		close(over)
		heard.Wait()
	}
}
