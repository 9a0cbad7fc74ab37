//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifySummary delivers SIGUSR1, by which a server is asked for a summary, until it is stopped.
// The signal must not kill the server then.
func notifySummary() (asked <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals, func() { signal.Ignore(syscall.SIGUSR1) }
}
