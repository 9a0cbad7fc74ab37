//go:build !unix

package metrics

import "os"

// notifyUser delivers nothing: there are no SIGUSR1 and SIGUSR2.
func notifyUser() (summaries, syncs <-chan os.Signal, stop func()) { return nil, nil, func() {} }
