package capture

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/window"
)

// unitCost is what a unit counts besides its bytes, against limits in bytes.
const unitCost = 128

// datagrams finds the sessions of hhfr over UDP, and puts the units of their sequences in order
// (docs/wire-format.md, section 12).
type datagrams struct {
	reader   *Reader
	limits   flow.Limits
	sessions map[uint64]*datagramSession
	order    []*datagramSession
	dials    map[dial]*datagramSession
	unnamed  []*datagramSession // those of which there are early datagrams alone: their ids are not known yet
	asks     map[uint64]int     // datagrams that ask, by nonce
	seen     int
	soap     soapDatagrams
	messages int // datagrams that are a message of SOAP
	cost     int64
	dropped  int64
	repeated int64
	packet   window.Packet
	err      error
}

// dial is what the early datagrams of a session tell it by, as they do not know its id.
type dial struct {
	from  netip.AddrPort
	nonce uint64
}

// datagramSession is one connection. The address of the end that opened it may change.
type datagramSession struct {
	*capturedConn
	flow      flow.Flow
	datagrams int
	nonce     uint64
	opened    bool // its answer or its opening was seen
	ways      [2]units
}

// units are what one direction carried, by number: those that wait for earlier ones.
type units struct {
	there map[uint64]datagramUnit
	next  uint64 // number of the unit to pass on next
	gap   bool   // a gap is before it
	begun bool   // at least one was passed on
	end   uint64 // the greatest number that is known to have been sent

	floors []seenFloor // those above next, ascending
}

// seenFloor is a floor that a datagram stated: units below it do not come again, but datagrams that
// are late in the capture may still bring them.
type seenFloor struct {
	below     uint64
	datagrams int // of the session, with this one
	at        time.Time
}

// A unit below a floor counts as missing once so many more datagrams of the session came, or so
// much time passed in the capture. Captures have packets out of order: they are written by several
// cores, or merged.
const (
	lateDatagrams = 16
	lateTime      = 10 * time.Second
)

type datagramUnit struct {
	octets []byte
	mark   flow.Mark
}

func newDatagrams(r *Reader, l flow.Limits) *datagrams {
	return &datagrams{reader: r, limits: l.WithDefaults(), sessions: map[uint64]*datagramSession{},
		dials: map[dial]*datagramSession{}, asks: map[uint64]int{}}
}

// take reads one datagram. A datagram that is not hhfr's, or was not captured whole, is only
// counted.
func (d *datagrams) take(g flow.UDPDatagram) error {
	d.seen++
	if g.Missing > 0 {
		return d.other(g)
	}
	h, ok := datagram.Parse(g.Data)
	if !ok {
		return d.other(g)
	}
	if len(h.Packet) > 0 && d.packet.Parse(h.Packet) != nil {
		return nil
	}
	switch h.Kind {
	case datagram.Ask:
		if len(d.asks) < d.limits.Flows {
			d.asks[h.Nonce]++
		}
	case datagram.Answer:
		if s := d.session(h, g.Dst, g.Src, g); s != nil {
			d.opened(s, dial{g.Dst, h.Nonce})
			if len(h.Packet) == 0 {
				s.datagrams++
				return nil
			}
			d.carried(s, h, g)
		}
	case datagram.Open, datagram.Data:
		if s := d.session(h, g.Src, g.Dst, g); s != nil && len(h.Packet) > 0 {
			d.carried(s, h, g)
		}
	case datagram.Early:
		if s := d.dialed(h, g); s != nil && len(h.Packet) > 0 {
			d.carried(s, h, g)
		}
	case datagram.Challenge, datagram.Proof:
		if s := d.sessions[h.Session]; s != nil {
			s.datagrams++
		}
	}
	return d.err
}

// other takes a datagram that is not hhfr's.
func (d *datagrams) other(g flow.UDPDatagram) error {
	if isEnvelope(g.Data) {
		d.messages++
		d.envelope(g)
	}
	return d.reader.failed()
}

// envelope gives the message that is a datagram.
func (d *datagrams) envelope(g flow.UDPDatagram) {
	r := d.reader
	r.met(&flow.Flow{Src: g.Src, Dst: g.Dst})
	m := &Decoded{flow: overDatagram, Src: g.Src, Dst: g.Dst, First: g.Time, Last: g.Time, Packet: g.PacketNo,
		Wire: int64(len(g.Data)), State: Unchecked, content: r.bodies.Body()}
	_, err := m.content.Write(g.Data)
	if err == nil {
		err = m.open()
	}
	first := 0
	m.Number, m.Reply, first = d.soap.place(datagramMessage{src: g.Src, packet: g.PacketNo}, m.Body, r.numbers.next)
	m.OneWay = !m.Reply
	switch {
	case err != nil:
		m.State, m.Why = Undecodable, err.Error()
	case g.Missing > 0:
		m.State, m.Why = Incomplete, flow.WhyCut.String()
	case first > 0:
		m.Why = fmt.Sprintf("sent again, first in packet %d", first)
	}
	m.recognize()
	r.give(m)
}

// opened notes that a session was opened, or can be, by a nonce.
func (d *datagrams) opened(s *datagramSession, by dial) {
	s.nonce, s.opened = by.nonce, true
	if len(d.dials) < d.limits.Flows {
		d.dials[by] = s
	}
}

// dialed finds or begins the session of an early datagram.
func (d *datagrams) dialed(h datagram.Datagram, g flow.UDPDatagram) *datagramSession {
	by := dial{g.Src, h.Nonce}
	s := d.dials[by]
	if s == nil {
		if s = d.begin(g.Src, g.Dst, g); s == nil {
			return nil
		}
		s.nonce = h.Nonce
		d.dials[by] = s
		d.unnamed = append(d.unnamed, s)
	}
	s.flow.Last = g.Time
	return s
}

// named is the session of early datagrams that a datagram has the id of: by the nonce, or, where
// what has both is not in the capture, by the addresses.
func (d *datagrams) named(h datagram.Datagram, src, dst netip.AddrPort) *datagramSession {
	i := slices.IndexFunc(d.unnamed, func(s *datagramSession) bool {
		if h.Kind != datagram.Data {
			return s.nonce == h.Nonce && s.flow.Src == src
		}
		return s.flow.Src == src && s.flow.Dst == dst || s.flow.Src == dst && s.flow.Dst == src
	})
	if i < 0 {
		return nil
	}
	s := d.unnamed[i]
	d.unnamed = slices.Delete(d.unnamed, i, i+1)
	return s
}

// session finds or begins the session of a datagram; src opened it as far as is known.
func (d *datagrams) session(h datagram.Datagram, src, dst netip.AddrPort, g flow.UDPDatagram) *datagramSession {
	s := d.sessions[h.Session]
	if s == nil {
		if s = d.named(h, src, dst); s == nil {
			s = d.begin(src, dst, g)
		}
		if s == nil {
			return nil
		}
		d.sessions[h.Session] = s
	}
	s.flow.Last = g.Time
	return s
}

// begin begins a session; nil if there are too many.
func (d *datagrams) begin(src, dst netip.AddrPort, g flow.UDPDatagram) *datagramSession {
	if len(d.order) >= d.limits.Flows {
		d.dropped += int64(len(g.Data))
		return nil
	}
	s := &datagramSession{flow: flow.Flow{ID: -1 - len(d.order), Src: src, Dst: dst, First: g.Time,
		FirstPacket: g.PacketNo}}
	s.capturedConn = d.reader.conn(&s.flow)
	for i := range s.ways {
		s.ways[i] = units{there: map[uint64]datagramUnit{}, next: 1}
	}
	d.order = append(d.order, s)
	return s
}

// carried reads a packet of a session.
func (d *datagrams) carried(s *datagramSession, h datagram.Datagram, g flow.UDPDatagram) {
	if h.Kind == datagram.Open {
		d.opened(s, dial{g.Src, h.Nonce})
		if g.Src == s.flow.Dst && g.Dst == s.flow.Src && !s.ways[0].begun &&
			!s.ways[1].begun { // the first one seen came from the peer
			s.flow.Src, s.flow.Dst = g.Src, g.Dst
			s.ways[0], s.ways[1] = s.ways[1], s.ways[0]
		}
	}
	way := 0
	switch {
	case g.Src == s.flow.Src || g.Dst == s.flow.Dst:
	case g.Src == s.flow.Dst || g.Dst == s.flow.Src:
		way = 1
	default:
		return // not from a participant
	}
	s.datagrams++
	p := &d.packet
	to, back := &s.ways[way], &s.ways[1-way]
	if p.HasAck && p.Ack.Done > back.end && p.Ack.Done-back.end <= datagram.Window {
		back.end = p.Ack.Done
	}
	if p.Number == 0 {
		return
	}
	if n := len(p.Units); n > 0 && p.Units[n-1].Number-p.Floor >= datagram.Window {
		return // no receiver takes it either
	}
	d.give(s, way, to.passed(p.Floor, s.datagrams, g.Time))
	to.end = max(to.end, p.Floor-1)
	if p.Closing && p.Last-p.Floor+1 <= datagram.Window {
		to.end = max(to.end, p.Last)
	}
	for i := range p.Units {
		d.keep(to, &p.Units[i], g)
	}
	d.give(s, way, 0)
}

// passed notes a floor, and returns the one below which nothing comes any more.
func (u *units) passed(floor uint64, datagrams int, at time.Time) (below uint64) {
	if n := len(u.floors); floor > u.next && (n == 0 || floor > u.floors[n-1].below) {
		u.floors = append(u.floors, seenFloor{floor, datagrams, at})
	}
	n := 0
	for ; n < len(u.floors); n++ {
		f := &u.floors[n]
		if f.below > u.next && datagrams-f.datagrams < lateDatagrams && at.Sub(f.at) < lateTime {
			break
		}
		below = f.below
	}
	u.floors = slices.Delete(u.floors, 0, n)
	return below
}

// keep stores a unit that is new.
func (d *datagrams) keep(to *units, u *window.Unit, g flow.UDPDatagram) {
	if _, there := to.there[u.Number]; there || u.Number < to.next {
		d.repeated += int64(len(u.Payload))
		return
	}
	cost := int64(len(u.Payload)) + unitCost
	if d.cost+cost > d.limits.Octets {
		d.dropped += int64(len(u.Payload))
		return
	}
	d.cost += cost
	to.end = max(to.end, u.Number)
	to.there[u.Number] = datagramUnit{u.Payload, flow.Mark{Time: g.Time, PacketNo: g.PacketNo, Comments: g.Comments}}
}

// give passes on the units that are in order, and all below a number, whatever is missing between
// them.
func (d *datagrams) give(s *datagramSession, way int, below uint64) {
	u := &s.ways[way]
	for d.err == nil {
		one, there := u.there[u.next]
		switch {
		case there:
			delete(u.there, u.next)
			d.cost -= int64(len(one.octets)) + unitCost
			gap := int64(0)
			if u.gap {
				gap = -1
			}
			if u.next++; len(one.octets) > 0 {
				d.err = s.Octets(way, gap, one.octets, one.mark)
				u.gap, u.begun = false, true
			}
		case u.next < below:
			u.next = min(below, u.lowest())
			u.gap = true
		default:
			return
		}
	}
}

// lowest returns the least number that waits.
func (u *units) lowest() uint64 {
	least := uint64(math.MaxUint64)
	for n := range u.there {
		least = min(least, n)
	}
	return least
}

// highest returns the greatest number that waits, or the one that was passed on last.
func (u *units) highest() uint64 {
	most := u.next - 1
	for n := range u.there {
		most = max(most, n)
	}
	return most
}

// close ends the sessions, and counts the datagrams of all others.
func (d *datagrams) close(st *flow.Stats, others map[string]int) error {
	rest := d.seen - d.messages
	st.Dropped += d.dropped
	st.Repeated += d.repeated
	for _, s := range d.order {
		for i := range s.ways {
			u := &s.ways[i]
			d.give(s, i, u.highest()+1)
			if u.gap || u.end >= u.next {
				s.flow.Ends[i].GapAfter = 1
			}
		}
		if d.err == nil {
			d.err = s.Closed()
		}
		if d.err != nil {
			return d.err
		}
		own := s.datagrams + d.asks[s.nonce]
		switch {
		case s.found():
			for i := range s.capturedConn.ways {
				t := &s.capturedConn.ways[i].tape
				st.Gaps += t.gaps
				st.MissingOctets += t.missing
				if s.flow.Ends[i].GapAfter > 0 {
					st.Gaps++
					st.MissingOctets++
				}
			}
		case s.opened:
			others["sessions over UDP without a sync frame to trust"]++
		case s.looksLike():
			others[unsynced(s.octets())]++
		default:
			own = 0
		}
		rest -= own
	}
	if rest > 0 {
		others["UDP datagrams"] = rest
	}
	return nil
}
