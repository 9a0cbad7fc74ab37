// Package service is a command as a service of its system: manager, signals, descriptors, memory.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/sdnotify"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Background is a server's relation to the service manager that started it, if one did.
type Background struct {
	notify *sdnotify.Notifier
	log    *slog.Logger
	doors  []*accept.Probed
	wait   sync.WaitGroup

	mu      sync.Mutex
	status  string             // for people, while all is well
	stop    context.CancelFunc // nil: not ready yet
	stopped bool
}

// New takes the place of the service that the system has started, if it has.
func New(log *slog.Logger) (*Background, error) {
	notify, err := sdnotify.Process()
	if err != nil {
		return nil, exit.Usage(err, "unset it, or have the service manager set it")
	}
	return &Background{notify: notify, log: log}, nil
}

// Watched has the watchdog ask at a listener; it is called before [Background.Ready].
func (b *Background) Watched(l net.Listener) net.Listener {
	if b.notify.Watchdog() == 0 {
		return l
	}
	door := accept.NewProbed(l)
	b.doors = append(b.doors, door)
	return door
}

// Ready says that the server serves. From then on the watchdog hears of it, until
// [Background.Stopping], as long as connections to its own listeners are served.
func (b *Background) Ready(status string) error {
	if b.notify.Watchdog() > 0 {
		if err := b.answers(context.Background()); err != nil {
			return exit.Withf(exit.Failed,
				"start it without WatchdogSec= if its own address cannot be reached from this machine",
				"the watchdog would end this server: %w", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	b.status, b.stop = status, cancel
	b.tell(b.notify.Ready(status))
	if b.notify.Watchdog() > 0 {
		b.wait.Go(func() { b.beat(ctx, status) })
	}
	return nil
}

// beatsPerWatchdog is how often in the time of the watchdog it hears of a server:
// sd_watchdog_enabled(3) recommends twice.
const beatsPerWatchdog = 2

func (b *Background) beat(ctx context.Context, status string) {
	wrong := false
	for {
		err := b.answers(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !wrong:
			b.log.Warn("this server does not answer: the watchdog is not told otherwise", "err", err)
			b.tell(b.notify.Status("does not answer: " + err.Error()))
		case err == nil && wrong:
			b.log.Warn("this server answers again")
			b.tell(b.notify.Status(status))
		}
		if wrong = err != nil; !wrong {
			b.tell(b.notify.Alive())
		}
		if clock.Real().Sleep(ctx, b.notify.Watchdog()/beatsPerWatchdog) != nil {
			return
		}
	}
}

// answers asks all listeners.
func (b *Background) answers(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, b.notify.Watchdog()/beatsPerWatchdog)
	defer cancel()
	for _, door := range b.doors {
		err = errors.Join(err, door.Answers(ctx))
	}
	return err
}

// Reloads returns what a SIGHUP calls: the manager is told of a reload, which is what load does;
// nil: nothing is reloaded.
func (b *Background) Reloads(load func()) func() {
	if load == nil {
		load = sync.OnceFunc(func() { b.log.Info("SIGHUP ignored: nothing is reloaded") })
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.stop == nil || b.stopped {
			load()
			return
		}
		b.tell(b.notify.Reloading())
		load()
		b.tell(b.notify.Ready(b.status))
	}
}

// Stopping says that the server shuts down. It may be called again.
func (b *Background) Stopping() {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.notify.Close()
	if b.stop == nil || b.stopped {
		return
	}
	b.stopped = true
	b.stop()
	b.wait.Wait()
	b.tell(b.notify.Stopping())
}

func (b *Background) tell(err error) {
	if err != nil {
		b.log.Warn("the service manager cannot be told", "err", err)
	}
}
