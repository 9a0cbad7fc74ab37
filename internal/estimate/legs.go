package estimate

import (
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/proxy"
)

// legs are what an exchange takes, one after the other. Each begins when the one before has arrived
// at the end that says it, or was said there.
type legs []leg

// leg is what one end says.
type leg struct {
	down    bool
	between bool          // it is no part of a call
	wait    time.Duration // until it begins
	writes  []write
}

// write is what leaves at once, so long after the leg began; without bytes it is a packet that has
// none, such as those that open and end a connection.
type write struct {
	after  time.Duration
	octets int64
}

// lasts is when the last of a leg leaves.
func (l *leg) lasts() time.Duration { return l.writes[len(l.writes)-1].after }

// once is one write.
func once(octets int64) []write { return []write{{octets: octets}} }

// bare is a packet without content.
func bare(down bool) leg { return leg{down: down, between: true, writes: once(0)} }

// traffic is what a leg takes, each write in packets of its own.
func (l *leg) traffic() (t traffic) {
	for _, w := range l.writes {
		n := max(link.PacketsOf(w.octets), 1)
		t.add(traffic{w.octets + packetHeaders*n, n})
	}
	return t
}

// packetHeaders is what a packet takes beside its content, in bytes.
const packetHeaders = 40

// legs returns the legs of a call by what is written of its messages, each from its beginning on.
func (c *capturedCall) legs(request []write, interim [][]write, reply []write) (l legs) {
	l = legs{{writes: request}}
	said := c.request.last // the last before the next leg
	for i, w := range interim {
		at := c.interim[i].first
		before, after := cut(l[len(l)-1].writes, at.Sub(c.request.first))
		if l[len(l)-1].down || len(before) == 0 || len(after) == 0 {
			l = append(l, leg{down: true, wait: max(at.Sub(said), 0), writes: w})
			said = at
			continue
		}
		l[len(l)-1].writes = before
		said = c.request.first.Add(l[len(l)-1].lasts())
		l = append(l, leg{down: true, wait: max(at.Sub(said), 0), writes: w}, leg{writes: after})
		said = c.request.last
	}
	wait := c.server
	if last := len(l) - 1; l[last].down {
		wait = max(c.reply.first.Sub(said), 0)
	}
	return append(l, leg{down: true, wait: wait, writes: reply})
}

// cut cuts writes at the time when something else was said; the times of those behind it are from
// then on.
func cut(all []write, at time.Duration) (before, after []write) {
	for i, w := range all {
		if w.after >= at {
			for _, w := range all[i:] {
				after = append(after, write{w.after - at, w.octets})
			}
			return all[:i], after
		}
	}
	return all, nil
}

// together is how soon bytes come behind others for who reads them to have them at once.
const together = time.Millisecond

// reads returns how a message came to who reads it.
func (m *message) reads() (all []proxy.Arrival) {
	for _, a := range m.came {
		if last := len(all) - 1; last >= 0 && a.At-all[last].At < together {
			all[last].Octets = a.Octets
			continue
		}
		all = append(all, a)
	}
	return all
}

// packets are the writes of a message as it was captured.
func (m *message) packets() (all []write) {
	from := 0
	for _, a := range m.came {
		all = append(all, write{a.At, int64(a.Octets - from)})
		from = a.Octets
	}
	return all
}

// changed are the writes of a message that somebody makes anew, of another length, once it is
// there.
func (m *message) changed(octets int64) []write {
	return []write{{m.came[len(m.came)-1].At, octets}}
}
