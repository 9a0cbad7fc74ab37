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

// signalled is why a command ends that was interrupted.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return s.String() + " signal received" }

// Unwrap makes it what an end of a context is.
func (signalled) Unwrap() error { return context.Canceled }

// doneCode is the exit code of a command without an error. Servers, and others that go on until a
// signal ends them, end in order by either: SIGTERM is how they are told to, Ctrl-C is told to the
// shell.
func doneCode(ctx context.Context) int {
	var s signalled
	if errors.As(context.Cause(ctx), &s) && s.Signal == os.Interrupt {
		return exitInterrupted
	}
	return exitDone
}

// outliveTerminal has a server go on when its terminal is closed, which SIGHUP says, until the
// function is called that it returns. Nothing is reloaded.
func outliveTerminal(logger *slog.Logger) (stop func()) {
	hangups, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	var heard sync.WaitGroup
	heard.Go(func() {
		select {
		case <-hangups:
			logger.Info("SIGHUP ignored: nothing is reloaded")
		case <-over:
		}
	})
	return func() {
		signal.Ignore(syscall.SIGHUP) // one that comes while the server ends must not kill it
		close(over)
		heard.Wait()
	}
}
