package estimate

import (
	"math"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/timeline"
)

// exchange is what goes over the link: a call, or the end of a connection.
type exchange struct {
	serial int // from 1
	server int // which pair carries it
	at     time.Duration
	after  [2]int // serial numbers of exchanges that it waits for; 0: none
	op     int    // whose call it is; below 0: the end of a connection
	legs   [ways]legs
}

// mostBehind is how many exchanges may wait on a link. One that falls further behind cannot carry
// what the capture has.
const mostBehind = 1 << 14

// virtualLink is a link on which exchanges travel one way, in virtual time.
type virtualLink struct {
	way     int
	profile link.Profile
	events  timeline.Timeline
	lines   [2]*link.Line // up, down
	streams map[int]*[2]pump
	behind  map[int]*inFlight // exchanges that are not over
	most    int               // of them
	full    bool              // it fell too far behind
	waits   []wait            // by operation
}

// wait is the time that calls took in all.
type wait struct {
	calls int
	sum   time.Duration
}

// inFlight is an exchange that is not over.
type inFlight struct {
	*exchange
	began time.Time
	holds int         // exchanges that it waits for, and its own time
	next  []*inFlight // exchanges that wait for it
}

func newNetwork(way int, p link.Profile, most int) (*virtualLink, error) {
	n := &virtualLink{way: way, profile: p, most: most, streams: map[int]*[2]pump{}, behind: map[int]*inFlight{}}
	for i := range n.lines {
		l, err := link.NewLine(p)
		if err != nil {
			return nil, err
		}
		n.lines[i] = l
	}
	return n, nil
}

// add adds an exchange, which begins now at the earliest.
func (n *virtualLink) add(x *exchange) {
	if n.full || len(x.legs[n.way]) == 0 {
		return
	}
	w := &inFlight{exchange: x, holds: 1}
	for _, before := range x.after {
		if b := n.behind[before]; b != nil {
			b.next = append(b.next, w)
			w.holds++
		}
	}
	if n.behind[x.serial] = w; len(n.behind) > n.most {
		n.full, n.behind, n.streams, n.events = true, nil, nil, timeline.Timeline{}
		return
	}
	n.events.After(x.at-n.now(), func() { n.release(w) })
}

func (n *virtualLink) now() time.Duration { return n.events.Now.Sub(time.Time{}) }

// run runs up to a time.
func (n *virtualLink) run(until time.Duration) {
	n.events.Run(time.Time{}.Add(until), func() bool { return false })
}

// finish runs to the end.
func (n *virtualLink) finish() { n.run(math.MaxInt64) }

// release takes one of the things away that an exchange waits for.
func (n *virtualLink) release(w *inFlight) {
	if w.holds--; w.holds > 0 {
		return
	}
	w.began = n.events.Now
	n.leg(w, 0)
}

// leg sends the next leg of an exchange.
func (n *virtualLink) leg(w *inFlight, i int) {
	all := w.legs[n.way]
	if i == len(all) {
		n.over(w)
		return
	}
	next := func() {
		if i+1 < len(all) && all[i+1].wait > 0 {
			n.events.After(all[i+1].wait, func() { n.leg(w, i+1) })
			return
		}
		n.leg(w, i+1)
	}
	arrived := next
	if i+1 < len(all) && all[i+1].down == all[i].down {
		arrived = func() {}
	}
	l := &all[i]
	p := n.pump(w.server, l.down)
	for k, one := range l.writes {
		then := func() {}
		if k == len(l.writes)-1 {
			then = arrived
		}
		if one.after == 0 {
			p.send(one.octets, then)
		} else {
			n.events.After(one.after, func() { p.send(one.octets, then) })
		}
	}
	if i+1 < len(all) && all[i+1].down == l.down {
		n.events.After(l.lasts(), next)
	}
}

// over ends an exchange.
func (n *virtualLink) over(w *inFlight) {
	delete(n.behind, w.serial)
	if w.op >= 0 {
		for len(n.waits) <= w.op {
			n.waits = append(n.waits, wait{})
		}
		n.waits[w.op].calls++
		n.waits[w.op].sum += n.events.Now.Sub(w.began)
	}
	for _, next := range w.next {
		n.release(next)
	}
}

// wait is the time of an operation.
func (n *virtualLink) wait(op int) (w wait) {
	if op < len(n.waits) {
		w = n.waits[op]
	}
	return w
}

// pump returns what carries a leg: of tunnels one for all, of pairs one for each server, and else
// one for each leg.
func (n *virtualLink) pump(server int, down bool) *pump {
	dir := 0
	if down {
		dir = 1
	}
	switch {
	case n.way < zlibbed:
		return &pump{network: n, line: n.lines[dir]}
	case n.way < firstContact:
		server = -1
	}
	s := n.streams[server]
	if s == nil {
		s = &[2]pump{{network: n, line: n.lines[0]}, {network: n, line: n.lines[1]}}
		n.streams[server] = s
	}
	return &s[dir]
}

// pump is one direction of a connection: each write leaves in packets of its own, but what is
// written while the queue of the line is full leaves together.
type pump struct {
	network *virtualLink
	line    *link.Line
	pending []chunk
	busy    bool
}

// chunk are bytes that were written, and what happens when the last one arrived.
type chunk struct {
	octets int64
	then   func()
}

func (p *pump) send(octets int64, then func()) {
	p.pending = append(p.pending, chunk{octets, then})
	if !p.busy {
		p.busy = true
		p.next()
	}
}

// next takes what was written meanwhile.
func (p *pump) next() {
	batch := p.pending
	p.pending = nil
	if p.busy = len(batch) > 0; p.busy {
		p.write(batch)
	}
}

// write puts a batch on the line, packet by packet, and waits while the queue is full.
func (p *pump) write(batch []chunk) {
	events := &p.network.events
	for len(batch) > 0 {
		left := int64(0)
		for _, c := range batch {
			left += c.octets
		}
		size := link.FirstPacket(left) // 0: a packet without content
		if wait := p.line.Room(events.Now, size); wait > 0 {
			events.After(wait, func() { p.write(batch) })
			return
		}
		arrives := p.line.Send(events.Now, size).Sub(events.Now)
		for len(batch) > 0 && size >= batch[0].octets {
			size -= batch[0].octets
			events.After(arrives, batch[0].then)
			batch = batch[1:]
		}
		if size > 0 {
			batch[0].octets -= size
		}
	}
	p.next()
}
