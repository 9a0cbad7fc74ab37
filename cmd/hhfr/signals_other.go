//go:build !unix

package main

import "os"

// notifySummary delivers nothing: there is no SIGUSR1.
func notifySummary() (asked <-chan os.Signal, stop func()) { return nil, func() {} }
