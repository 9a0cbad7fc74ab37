package capture

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// unitCost is what a unit takes beside its octets, against limits in octets.
const unitCost = 128

// datagrams finds the sessions of hhfr over UDP, and puts the units of their sequences in order (docs/wire-format.md, section 12).
type datagrams struct {
	limits   flow.Limits
	sessions map[uint64]*datagramSession
	asks     map[uint64]int // datagrams that ask, by nonce
	seen     int
	cost     int64
	dropped  int64
	repeated int64
	packet   wsrm.Packet
}

// datagramSession is one connection. The address of who opened it may change.
type datagramSession struct {
	flow      flow.Flow
	cost      int64
	datagrams int
	nonce     uint64
	opened    bool // its answer or its opening is there
	ways      [2]units
}

// units are what one direction carried, by number.
type units struct {
	there map[uint64]unit
	end   uint64 // the greatest number that is known to have been sent
}

type unit struct {
	octets      []byte
	first, last bool // of its message
	mark        flow.Mark
}

func newDatagrams(l flow.Limits) *datagrams {
	return &datagrams{limits: l.WithDefaults(), sessions: map[uint64]*datagramSession{}, asks: map[uint64]int{}}
}

// take takes in one datagram. What is none of hhfr, or was not captured whole, is only counted.
func (d *datagrams) take(g flow.Datagram) error {
	d.seen++
	if g.Missing > 0 {
		return nil
	}
	h, ok := udp.Parse(g.Data)
	if !ok {
		return nil
	}
	switch h.Kind {
	case udp.Ask:
		if len(d.asks) < d.limits.Flows {
			d.asks[h.Nonce]++
		}
	case udp.Answer:
		if s := d.session(h, g.Dst, g.Src, g); s != nil {
			s.nonce, s.opened = h.Nonce, true
			s.datagrams++
		}
	case udp.Open, udp.Data:
		if udp.Codec.Parse(h.Packet, &d.packet) != nil {
			return nil
		}
		if s := d.session(h, g.Src, g.Dst, g); s != nil {
			d.carried(s, h, g)
		}
	case udp.Challenge, udp.Proof:
		if s := d.sessions[h.Session]; s != nil {
			s.datagrams++
		}
	}
	return nil
}

// session finds or begins that of a datagram; src opened it as far as is known.
func (d *datagrams) session(h udp.Datagram, src, dst netip.AddrPort, g flow.Datagram) *datagramSession {
	s := d.sessions[h.Session]
	switch {
	case s != nil:
	case len(d.sessions) >= d.limits.Flows:
		d.dropped += int64(len(g.Data))
		return nil
	default:
		s = &datagramSession{flow: flow.Flow{Src: src, Dst: dst, First: g.Time, FirstPacket: g.PacketNo}}
		for i := range s.ways {
			s.ways[i].there = map[uint64]unit{}
		}
		d.sessions[h.Session] = s
	}
	s.flow.Last = g.Time
	return s
}

// carried takes in a packet of a session.
func (d *datagrams) carried(s *datagramSession, h udp.Datagram, g flow.Datagram) {
	if h.Kind == udp.Open {
		s.nonce, s.opened = h.Nonce, true
		if g.Src == s.flow.Dst && g.Dst == s.flow.Src { // the first one seen came from the other end
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
		return // of nobody who takes part
	}
	s.datagrams++
	p := &d.packet
	to, back := &s.ways[way], &s.ways[1-way]
	if p.HasAck && p.Ack.Done > back.end && p.Ack.Done-back.end <= udp.Window {
		back.end = p.Ack.Done
	}
	if p.Number == 0 {
		return
	}
	if n := len(p.Units); n > 0 && p.Units[n-1].Number-p.Floor >= udp.Window {
		return // which no receiver takes either
	}
	to.end = max(to.end, p.Floor-1)
	if p.Closing && p.Last-p.Floor+1 <= udp.Window {
		to.end = max(to.end, p.Last)
	}
	for i := range p.Units {
		d.keep(s, to, &p.Units[i], g)
	}
}

// keep keeps a unit that is new.
func (d *datagrams) keep(s *datagramSession, to *units, u *wsrm.Unit, g flow.Datagram) {
	if _, there := to.there[u.Number]; there {
		d.repeated += int64(len(u.Payload))
		return
	}
	cost := int64(len(u.Payload)) + unitCost
	if s.cost+cost > d.limits.FlowOctets || d.cost+cost > d.limits.Octets {
		d.dropped += int64(len(u.Payload))
		return
	}
	s.cost += cost
	d.cost += cost
	to.end = max(to.end, u.Number)
	to.there[u.Number] = unit{u.Payload, u.First, u.Last, flow.Mark{Time: g.Time, PacketNo: g.PacketNo, Comments: g.Comments}}
}

// flows gives the sessions that carry streams, as if they were connections of a capture, in the order of their first packets. others counts the rest.
func (d *datagrams) flows(st *flow.Stats, others map[string]int) (list []*flow.Flow) {
	rest := d.seen
	st.Dropped += d.dropped
	st.Repeated += d.repeated
	for _, s := range slices.SortedFunc(maps.Values(d.sessions), func(a, b *datagramSession) int { return cmp.Compare(a.flow.FirstPacket, b.flow.FirstPacket) }) {
		f := &s.flow
		var gaps, missing [2]int64
		for i := range s.ways {
			f.Dirs[i].Runs = s.ways[i].runs()
			gaps[i], missing[i] = place(f.Dirs[i].Runs)
			if s.ways[i].behind() {
				f.Dirs[i].GapAfter = 1
				gaps[i]++
				missing[i]++
			}
		}
		if !isStream(f) && !s.opened {
			if kind := unsynced(f); kind != "" {
				rest -= s.datagrams + d.asks[s.nonce]
				others[kind]++
			}
			continue
		}
		rest -= s.datagrams + d.asks[s.nonce]
		if !isStream(f) {
			others["sessions over UDP without a sync frame to trust"]++
			continue
		}
		f.ID = st.TCPFlows + len(list) + 1
		f.Opened = s.opened
		st.Gaps += int(gaps[0] + gaps[1])
		st.MissingOctets += missing[0] + missing[1]
		list = append(list, f)
	}
	if rest > 0 {
		others["UDP datagrams"] = rest
	}
	return list
}

// behind tells whether units are missing behind the last one that is there.
func (u *units) behind() bool {
	if u.end == 0 {
		return false
	}
	_, there := u.there[u.end]
	return !there
}

// runs joins units without a gap between them. How long a gap is they do not tell; [place] finds out.
func (u *units) runs() (runs []flow.Run) {
	next := uint64(1)
	for _, n := range slices.Sorted(maps.Keys(u.there)) {
		if len(runs) == 0 || n != next {
			runs = append(runs, flow.Run{GapBefore: unknownGap})
			if n == 1 {
				runs[0].GapBefore = 0
			}
		}
		next = n + 1
		one, r := u.there[n], &runs[len(runs)-1]
		if len(one.octets) == 0 {
			continue
		}
		one.mark.At = len(r.Data)
		r.Marks = append(r.Marks, one.mark)
		r.Data = append(r.Data, one.octets...)
	}
	return slices.DeleteFunc(runs, func(r flow.Run) bool { return len(r.Data) == 0 })
}

// unknownGap stands before a run of which it is not known how much is missing in front of it.
const unknownGap = -1

// maxOffset keeps sums of offsets within 63 bits.
const maxOffset = math.MaxInt64 / 4
