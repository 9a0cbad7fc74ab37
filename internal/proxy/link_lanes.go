package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// enter takes a lane without a client, for one that may come again, or for a connection alone: the
// zero key. false: there is none.
func (l *link) enter(client principal.Key) (vacancy, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if client.IsShared() {
		if v, ok := l.vacant.own(client); ok {
			return v, true
		}
	}
	free, left, kept := &l.vacant.free, &l.vacant.left, &l.vacant.kept
	switch {
	case !client.IsShared() && len(*left) > 0:
		return pop(left), true
	case len(*free) > 0:
		return pop(free), true
	case len(*kept) < maxKept && l.highest < uint64(l.p.cfg.MaxConns):
		l.highest++ // lane 0 is for messages of endpoints that speak hhfr themselves
		return vacancy{number: l.highest, told: true}, true
	case len(*kept) > 0:
		v := (*kept)[0]
		*kept = slices.Delete(*kept, 0, 1)
		return v, true
	case len(*left) > 0:
		return pop(left), true
	}
	return vacancy{}, false
}

// await waits a moment while another connection of a client may be about to end: many close one and
// open the next at once, and which of the two is noticed first is chance.
func (l *link) await(client principal.Key) {
	if !client.IsShared() {
		return
	}
	var timer clock.Timer
	for {
		gone, idle := l.idle(client)
		if !idle {
			return
		}
		if timer == nil {
			timer = l.p.cfg.Clock.NewTimer(closingTime)
			defer timer.Stop()
		}
		select {
		case <-gone:
		case <-timer.C():
			return
		case <-l.p.ctx.Done():
			return
		}
	}
}

// idle reports whether a client has a connection without a call in progress, and no lane that waits
// for it; gone is closed when one of all connections has left its lane.
func (l *link) idle(client principal.Key) (gone <-chan struct{}, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.vacant.has(client) {
		return nil, false
	}
	for _, c := range l.callers {
		if c.entered == client && c.progress.mayLeave() {
			if l.gone == nil {
				l.gone = make(chan struct{})
			}
			return l.gone, true
		}
	}
	return nil, false
}

// leave gives a lane back.
func (l *link) leave(v vacancy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		close(l.gone)
		l.gone = nil
	}
	switch {
	case v.told && v.owner.IsShared():
		v.since = l.p.cfg.Clock.Now()
		l.vacant.kept = append(l.vacant.kept, v)
		l.expireLocked()
		return
	case v.told:
		l.vacant.free = append(l.vacant.free, v)
		return
	}
	l.vacant.left = append(l.vacant.left, v)
	l.tellLaterLocked(len(l.vacant.left) - 1)
}

// tellLaterLocked has the far end be told of the connections that are gone; before: how many it was
// to be told of before.
func (l *link) tellLaterLocked(before int) {
	switch {
	case before > 0 || len(l.vacant.left) == 0:
	case l.tell == nil:
		l.tell = l.p.cfg.Clock.AfterFunc(EndDelay, func() { l.tellEnds(l.p.ctx) })
	default:
		l.tell.Reset(EndDelay)
	}
}

// disownLocked has nobody go on with the lanes that are chosen.
func (l *link) disownLocked(chosen func(vacancy) bool) {
	before := len(l.vacant.left)
	l.vacant.disown(chosen)
	l.tellLaterLocked(before)
}

// forget empties the memories that are kept for an address.
func (l *link) forget(addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disownLocked(func(v vacancy) bool { return v.owner.Addr() == addr })
}

// expireLocked empties the memories that were kept for long, and does so again when others were.
func (l *link) expireLocked() {
	now := l.p.cfg.Clock.Now()
	l.disownLocked(func(v vacancy) bool { return v.told && now.Sub(v.since) >= principal.Lifetime })
	if len(l.vacant.kept) == 0 {
		return
	}
	rest := principal.Lifetime - now.Sub(l.vacant.kept[0].since)
	if l.expire != nil {
		l.expire.Reset(rest)
		return
	}
	l.expire = l.p.cfg.Clock.AfterFunc(rest, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.expireLocked()
	})
}

// tellEnds tells the far end which connections are gone. It is called with the next call of another
// client, since what is sent together goes in one packet, or after EndDelay.
func (l *link) tellEnds(ctx context.Context) {
	l.mu.Lock()
	left := l.vacant.left
	l.vacant.left = nil
	l.mu.Unlock()
	for _, v := range left {
		if l.end(ctx, v.number, endOf(v.owner)) != nil {
			return // the stream is over
		}
		v.told = true
		l.leave(v)
	}
}

// end tells the far end that the connection of a lane is gone (hangUp), or its client (leave).
func (l *link) end(ctx context.Context, number uint64, how messageKind) error {
	lane := l.stream.Lane(number)
	said := line(how)
	if how == hangUp && l.stream.Hello().Abilities&endsShortly != 0 {
		said = []byte(hangUpLine)
	}
	if err := lane.Send(ctx, &streamer.Message{Head: said}); err != nil {
		return err
	}
	if how == leave {
		lane.Restart()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients[number]++
	return nil
}

// clientsBefore is how many connections a lane had before the present one.
func (l *link) clientsBefore(number uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients[number]
}
