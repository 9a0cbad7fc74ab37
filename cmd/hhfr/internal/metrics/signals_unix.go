//go:build unix

package metrics

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyUser delivers SIGUSR1, by which a server is asked for a summary, and SIGUSR2, by which it
// is asked for syncs, until it is stopped. The signals must not kill the server then.
func notifyUser() (summaries, syncs <-chan os.Signal, stop func()) {
	first, second := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(first, syscall.SIGUSR1)
	signal.Notify(second, syscall.SIGUSR2)
	return first, second, func() { signal.Ignore(syscall.SIGUSR1, syscall.SIGUSR2) }
}
