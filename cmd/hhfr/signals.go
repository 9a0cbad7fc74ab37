package main

import (
	"context"
	"errors"
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

// hangups are the SIGHUPs of a server: its terminal was closed, or it is to reload. They do not end
// it.
type hangups struct {
	signals chan os.Signal
	over    chan struct{}
	heard   sync.WaitGroup
}

// hearHangups takes them from now on, until [hangups.stop].
func hearHangups() *hangups {
	h := &hangups{signals: make(chan os.Signal, 1), over: make(chan struct{})}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// call calls reload for each, also for one that came before.
func (h *hangups) call(reload func()) {
	h.heard.Go(func() {
		for {
			select {
			case <-h.signals:
				reload()
			case <-h.over:
				return
			}
		}
	})
}

// stop waits for a reload in progress. A signal during the shutdown must not kill the server.
func (h *hangups) stop() {
	signal.Ignore(syscall.SIGHUP)
	close(h.over)
	h.heard.Wait()
}
