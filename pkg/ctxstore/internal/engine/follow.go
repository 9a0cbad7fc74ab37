package engine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Changes tells watches that something changed. The zero value is ready; all methods are safe for
// concurrent use.
type Changes struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{}
}

func (c *Changes) add(wake chan struct{}) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[chan struct{}]struct{}{}
	}
	c.all[wake] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, wake)
	}
}

// Tell wakes all watches.
func (c *Changes) Tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for wake := range c.all {
		signal(wake)
	}
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Look returns the revision of every entry watched.
type Look func(context.Context) (map[string]uint64, error)

// Follow calls look on every wake and sends what changed since known, in the order of the URIs,
// until ctx is done; then it closes out. A look that fails is skipped: the next one catches up. It
// keeps only one map of what it saw, however slow the receiver is.
func Follow(ctx context.Context, known map[string]uint64, wake <-chan struct{}, look Look, out chan<- ctxstore.Change) {
	defer close(out)
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
		now, err := look(ctx)
		if err != nil {
			continue
		}
		for _, c := range differences(known, now) {
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
		known = now
	}
}

func differences(before, now map[string]uint64) []ctxstore.Change {
	var list []ctxstore.Change
	for _, uri := range slices.Sorted(maps.Keys(before)) {
		if _, still := now[uri]; !still {
			list = append(list, ctxstore.Change{URI: uri, Revision: before[uri], Deleted: true})
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(now)) {
		if was, had := before[uri]; !had || was != now[uri] {
			list = append(list, ctxstore.Change{URI: uri, Revision: now[uri]})
		}
	}
	return list
}
