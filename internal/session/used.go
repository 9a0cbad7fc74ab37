package session

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// UsedPrefix begins the URIs of the entries that record which shapes were used with an origin: what
// the next offer to it names. A value is fingerprints, one after another, those used last at the
// end.
const UsedPrefix = xmlns.HHFRNegotiation + ":used:"

const (
	// maxGuesses is how many shapes an offer has when it names some that its session may not use,
	// and maxHopes when it names some that the peer may not have.
	maxGuesses, maxHopes = coders.Recent, 16
	// worthNaming is from which length on a shape, as it travels, is named in offers, in bytes: its
	// name takes 44 bytes, as many in the answer, and a reference to it 36. A text that announces a
	// shape often takes hardly more than what it has beside markup.
	worthNaming = 256
	// maxUsed is how many shapes an entry has. Those beyond maxGuesses are offered where they are
	// known to be used.
	maxUsed = 256
	// usedFor is how long it is known what was used.
	usedFor = 30 * 24 * time.Hour
)

func usedURI(u *url.URL) string { return UsedPrefix + negotiate.Origin(u) }

// usedShapes are the shapes that a stream has used, until they are stored.
type usedShapes struct {
	coder streamer.Coder
	known [][32]byte // the peer had them when the stream began
	once  sync.Once
}

// keepUsed stores that shapes were used with a peer, if the next offer would not name them anyway.
// If another session does so at the same time, the other one wins.
func (d *Dialer) keepUsed(u *url.URL, now [][32]byte) {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Timeout)
	defer cancel()
	before, entry := d.used(ctx, u)
	now = slices.DeleteFunc(now, func(fp [32]byte) bool {
		return !slices.Contains(before, fp) && !d.worthNaming(ctx, fp)
	})
	used, changed := coders.UsedLast(before, now, maxUsed)
	if !changed {
		return
	}
	var value []byte
	for _, fp := range used {
		value = append(value, fp[:]...)
	}
	_, err := d.cfg.Store.Put(ctx, usedURI(u), value,
		ctxstore.PutOptions{IfRevision: ctxstore.If(entry.Revision), TTL: usedFor})
	if err != nil && !errors.Is(err, ctxstore.Conflict) {
		d.cfg.Log.Warn("used shapes not remembered", "url", loggable(u), "err", err)
	}
}

// worthNaming reports whether a shape is so long that offers name it.
func (d *Dialer) worthNaming(ctx context.Context, fp [32]byte) bool {
	octets, err := ctxstore.Shapes{Store: d.cfg.Store}.Get(ctx, fp)
	return err == nil && len(transit.Pack(nil, octets, nil)) >= worthNaming
}

// used returns the shapes that were used with a peer, those used last at the end, and their entry.
func (d *Dialer) used(ctx context.Context, u *url.URL) (fps [][32]byte, entry ctxstore.Entry) {
	entry, _ = d.cfg.Store.Get(ctx, usedURI(u))
	for fp := range slices.Chunk(entry.Value, 32) {
		if len(fp) == 32 {
			fps = append(fps, [32]byte(fp))
		}
	}
	return fps, entry
}

// known returns the shapes to offer: all of Config.Shapes that were used with the peer before, then
// others of Config.Shapes, then what was used last. The likeliest stand at the end.
func (d *Dialer) known(ctx context.Context, u *url.URL) (fps [][32]byte) {
	used, entry := d.used(ctx, u)
	if entry.Revision == 0 {
		// Stores of earlier versions know only what the session used which can be joined again.
		if c, _, _ := metBefore(ctx, d.cfg.Store, u); c != nil {
			used = c.PeerShapes
		}
	}
	var sure, others [][32]byte
	for _, fp := range d.cfg.Shapes {
		if slices.Contains(used, fp) {
			sure = append(sure, fp)
		} else {
			others = append(others, fp)
		}
	}
	used = slices.DeleteFunc(used, func(fp [32]byte) bool { return slices.Contains(sure, fp) })
	others = others[:min(len(others), max(0, maxHopes-len(sure)))]
	used = used[max(0, len(used)-max(0, maxGuesses-len(others)-len(sure))):]
	return slices.Concat(used, others, sure)
}

// keep stores which shapes a stream has used with a peer, once it has ended.
func (u *usedShapes) keep(d *Dialer, peer *url.URL) {
	u.once.Do(func() {
		if coders.Learned(u.known, u.coder) {
			d.keepUsed(peer, coders.Carried(u.coder))
		}
	})
}
