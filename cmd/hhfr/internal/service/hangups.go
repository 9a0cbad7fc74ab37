package service

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Hangups are the SIGHUPs of a server: its terminal was closed, or it is to reload. They do not end
// it.
type Hangups struct {
	signals chan os.Signal
	over    chan struct{}
	heard   sync.WaitGroup
}

// HearHangups takes them from now on, until [Hangups.Stop].
func HearHangups() *Hangups {
	h := &Hangups{signals: make(chan os.Signal, 1), over: make(chan struct{})}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// Call calls reload for each, also for one that came before.
func (h *Hangups) Call(reload func()) {
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

// Stop waits for a reload in progress. A signal during the shutdown must not kill the server.
func (h *Hangups) Stop() {
	signal.Ignore(syscall.SIGHUP)
	close(h.over)
	h.heard.Wait()
}
