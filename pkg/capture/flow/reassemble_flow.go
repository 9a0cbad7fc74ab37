package flow

import "net/netip"

// tcp puts a segment where it belongs.
func (a *Assembler) tcp(s *segment) error {
	key := flowKey{s.src, s.dst, s.encap}
	if s.dst.Compare(s.src) < 0 {
		key.a, key.b = s.dst, s.src
	}
	f := a.flows[key]
	if f != nil && s.flags&flagSYN != 0 && f.isOther(s) {
		if err := a.give(f); err != nil {
			return err
		}
		f = nil
	}
	if f == nil {
		f = a.begin(key, s)
	}
	a.recent.MoveToBack(f.place)
	f.Last = s.time
	before := f.size()
	f.take(s, &a.stats, a.cfg.Limits, a.cfg.Limits.FlowOctets-f.octets)
	grown := f.size() - before
	f.octets += grown
	a.octets += grown
	if f.ended() && !f.closed {
		f.closed, f.closedAt = true, s.time
		a.closing = append(a.closing, f)
	}
	return a.tidy(s.time)
}

func (a *Assembler) begin(key flowKey, s *segment) *openFlow {
	a.stats.TCPFlows++
	f := &openFlow{key: key}
	f.Flow = Flow{ID: a.stats.TCPFlows, Src: s.src, Dst: s.dst, First: s.time, FirstPacket: s.no}
	if s.flags&(flagSYN|flagACK) == flagSYN|flagACK {
		f.Src, f.Dst, f.Opened = s.dst, s.src, true
	}
	a.flows[key] = f
	f.place = a.recent.PushBack(f)
	return f
}

// dir is the index of the direction that src sends in.
func (f *openFlow) dir(src netip.AddrPort) int {
	if src == f.Src {
		return 0
	}
	return 1
}

// isOther reports whether a segment with SYN belongs to another connection, of the same addresses. It does not if its sequence number is the one already known, or fits in front
// of all that was seen.
func (f *openFlow) isOther(s *segment) bool {
	i := f.dir(s.src)
	d, other := &f.dirs[i], &f.dirs[1-i]
	begin := s.seq + 1
	switch {
	case !d.SYN && s.flags&flagACK == 0 && len(other.Runs)+len(other.pending) > 0:
		return true // an answer before the first SYN is of a connection before
	case d.SYN || d.known:
		return begin != d.base
	case len(d.pending) > 0:
		return d.pos(begin) > d.pending[0].at || d.pending[0].at-d.pos(begin) > maxReorder
	}
	return f.closed
}

// maxReorder is how far before the first octet seen a late SYN may lie, in octets.
const maxReorder = 1 << 20

// take is what a segment does to both directions; room is what the flow may still grow, in octets.
func (f *openFlow) take(s *segment, st *Stats, l Limits, room int64) {
	i := f.dir(s.src)
	d, other := &f.dirs[i], &f.dirs[1-i]
	seq := s.seq
	if s.flags&flagSYN != 0 {
		seq++
		d.SYN = true
		d.begin(seq)
		if s.flags&flagACK == 0 && len(other.Runs) == 0 && !f.Opened && i == 1 {
			f.turn() // the first packet seen came from the other end
			d, other = other, d
		}
		f.Opened = true
		if s.flags&flagACK != 0 && !other.known && len(other.pending) == 0 {
			other.begin(s.ack)
		}
	}
	if s.flags&flagACK != 0 {
		other.acknowledged(s.ack, st)
	}
	if s.flags&flagRST != 0 {
		d.RST = true // what a reset carries is no data (RFC 9293, section 3.5.3)
		return
	}
	if len(s.payload) > 0 || s.short > 0 {
		d.add(seq, s, st, l, room)
	}
	if s.flags&flagFIN != 0 {
		d.fin(seq + uint32(len(s.payload)+s.short))
	}
}

// turn makes Dst the one that opened the connection.
func (f *openFlow) turn() {
	f.Src, f.Dst = f.Dst, f.Src
	f.dirs[0], f.dirs[1] = f.dirs[1], f.dirs[0]
}

func (f *openFlow) ended() bool {
	return f.dirs[0].RST || f.dirs[1].RST || f.dirs[0].FIN && f.dirs[1].FIN
}

func (f *openFlow) size() int64 { return f.dirs[0].cost + f.dirs[1].cost }
