// Package follow turns a function that reads a store into a watch on it, for engines that have
// nothing better.
package follow

import (
	"context"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Look returns the revision of every entry watched.
type Look func(context.Context) (map[string]uint64, error)

// Run calls look on every wake and sends what changed since known, in the order of the URIs, until
// ctx is done; then it closes out. A look that fails is skipped: the next one catches up. It keeps
// only one map of what it saw, however slow the receiver is.
func Run(ctx context.Context, known map[string]uint64, wake <-chan struct{}, look Look, out chan<- ctxstore.Change) {
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
		for _, c := range changes(known, now) {
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
		known = now
	}
}

func changes(before, now map[string]uint64) []ctxstore.Change {
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
