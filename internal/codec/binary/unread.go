package binary

import (
	"sync"
	"sync/atomic"
)

// unread are shapes that the peer has, and that are read from the store only when a message fits
// none of those in the book that the peer has: a session begins without them, and few use all.
type unread struct {
	mu    sync.Mutex
	names []Fingerprint // those used last stand last
	times atomic.Int64  // how often some were read; changed under mu
}

// read returns how often shapes were read.
func (u *unread) read() int64 { return u.times.Load() }

// more reads the next shapes into a book, unless some were read since the caller looked. It reports
// whether there are others now than before.
func (u *unread) more(book *Book, before int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.names) == 0 {
		return u.times.Load() != before
	}
	ctx, cancel := storeContext()
	defer cancel()
	for u.times.Load() == before && len(u.names) > 0 {
		from := max(0, len(u.names)-readAtOnce)
		if book.load(ctx, u.names[from:]) > 0 {
			u.times.Add(1)
		}
		u.names = u.names[:from]
	}
	return u.times.Load() != before
}
