package meter

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Upstream are the counters of one upstream in one role.
type Upstream struct {
	role       *Role
	name       string
	load       load // its wire is not used: streams count what they carry
	inProgress atomic.Int64

	mu      sync.Mutex
	plain   map[string]*Plain // by reason
	live    []*liveStream
	past    carried          // of streams that are over
	opened  int64            // streams
	failed  map[string]int64 // attempts to open a stream, by reason
	reason  string           // of the last attempt; empty: it has not failed
	why     string           // more about it, for people
	changed time.Time        // of reason
	uses    int
	gone    bool // it was used, and is not any more
}

// liveStream is a stream that may still carry something.
type liveStream struct {
	stream *streamer.Stream
	path   streamer.PathInfo // as it was last known
}

// carried is what streams have carried, with its frames.
type carried struct {
	sent, received             int64 // bytes
	shapesSent, shapesReceived int64
	creditWaits, resent        int64
}

func (c *carried) add(s streamer.Stats, path streamer.PathInfo) {
	c.sent += s.Sent.Octets()
	c.received += s.Received.Octets()
	c.shapesSent += s.Sent.Shape.Frames
	c.shapesReceived += s.Received.Shape.Frames
	c.creditWaits += s.CreditWaits
	c.resent += path.Resent
}

// Use notes that something leads to the upstream, such as a route, until [Upstream.Leave].
func (u *Upstream) Use() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.uses++; u.gone {
		u.gone, u.reason, u.why, u.changed = false, "", "", time.Time{}
	}
}

// Leave ends a use. After the last one the upstream has counts, but no state.
func (u *Upstream) Leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.uses--
	u.gone = u.uses == 0
}

// Plain returns the counters of what goes to the upstream, or is answered, without a stream for a
// reason in a word.
func (u *Upstream) Plain(reason string) *Plain {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.plain[reason]
	if p == nil {
		p = &Plain{upstream: u, reason: reason}
		u.plain[reason] = p
	}
	return p
}

// Opened counts a stream that was opened, and what it carries from now on.
func (u *Upstream) Opened(s *streamer.Stream, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweepLocked()
	u.live = append(u.live, &liveStream{stream: s})
	u.opened++
	u.setLocked("", "", now)
}

// Failed counts an attempt to open a stream that failed, for a reason in a word; why says more.
func (u *Upstream) Failed(reason, why string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failed[reason]++
	u.setLocked(reason, why, now)
}

func (u *Upstream) setLocked(reason, why string, now time.Time) {
	if u.changed.IsZero() || u.reason != reason {
		u.changed = now
	}
	u.reason, u.why = reason, why
}

// Sweep lets go of streams that are over, once their counts are added to those of earlier ones.
func (u *Upstream) Sweep() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweepLocked()
}

func (u *Upstream) sweepLocked() {
	u.live = slices.DeleteFunc(u.live, func(l *liveStream) bool {
		if path, ok := l.stream.Path(); ok {
			l.path = path
		}
		select {
		case <-l.stream.Done():
			u.past.add(l.stream.Stats(), l.path)
			return true
		default:
			return false
		}
	})
}

// Resync has all streams, and their peers, send a sync at which a decoder can begin without a store
// ([streamer.Stream.Resync]), and returns how many streams there are.
func (m *Meter) Resync() (streams int) {
	for _, r := range []*Role{m.Near, m.Far, m.Serve} {
		for _, u := range r.all() {
			streams += u.resync()
		}
	}
	return streams
}

func (u *Upstream) resync() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweepLocked()
	for _, l := range u.live {
		l.stream.Resync()
	}
	return len(u.live)
}
