package nats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// makeRoom drops the oldest shapes for need bytes, and some more, so that the next ones need not
// look. full is the error to return if that would not do.
func (b *Bucket) makeRoom(ctx context.Context, uri string, need int64, full error) error {
	if b.max <= 0 {
		return full
	}
	shapes := filters(ctxstore.ShapePrefix)[0]
	list, err := b.messages(ctx, []string{shapes})
	if err != nil {
		return err
	}
	var used int64
	err = b.try(ctx, uri, func(ctx context.Context) error {
		info, err := b.stream.Info(ctx)
		if err == nil {
			used = int64(info.State.Bytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(x, y listedEntry) int { return cmp.Compare(x.revision, y.revision) })
	const fields = 256 // what a message takes besides its value
	least := used + need + fields - b.max
	var free int64
	var last uint64
	for _, l := range list {
		if free >= least+b.max/16 {
			break
		}
		free += l.size + int64(len(b.subjects)+len(l.key))
		last = l.revision
	}
	if free < least || last == 0 {
		return full
	}
	return b.purge(ctx, uri, b.subjects+shapes, last)
}

// orphanAge is when parts that no entry has are removed: no upload takes that long.
const orphanAge = time.Hour

// sweep removes parts that a process left behind that died while it stored or replaced a value.
func (b *Bucket) sweep() {
	parts, err := b.messages(b.access.Open, []string{partKeys + ">"})
	if err != nil || len(parts) == 0 {
		return
	}
	entries, err := b.messages(b.access.Open, []string{ownKeys + ">", otherKeys + ">", longKeys + ">"})
	if err != nil {
		return
	}
	used := map[string]bool{}
	for _, l := range entries {
		used[l.parts.name] = true
	}
	for _, l := range parts {
		name, _, _ := strings.Cut(strings.TrimPrefix(l.key, partKeys), ".")
		if !used[name] && b.cfg.Clock.Since(l.when) > orphanAge {
			used[name] = true
			b.discard(b.access.Open, partsOf{name: name})
		}
	}
}
