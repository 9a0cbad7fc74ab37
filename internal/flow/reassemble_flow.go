package flow

import "net/netip"

// tcp adds a segment to its connection.
func (a *Assembler) tcp(s *payloadPart) error {
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
	f.in.MoveToBack(f.place)
	f.Last = s.time
	if f.resumed && len(s.payload) > 0 {
		f.resumed = false
		a.stats.Evicted++
	}
	before, open := f.size(), f.Ended.IsZero()
	f.take(s, &a.stats, a.cfg.Limits)
	f.flush()
	if open && !f.Ended.IsZero() {
		f.in.Remove(f.place)
		f.in, f.place = a.halves, a.halves.PushBack(f)
		if a.cfg.Ending != nil && f.err == nil {
			f.err = a.cfg.Ending(&f.Flow)
		}
	}
	// data that waits for the other direction is subject to the same limits as data that waits in
	// its own
	for i := range f.dirs {
		d, other := &f.dirs[i], &f.dirs[1-i]
		for l := &a.cfg.Limits; len(other.pending) > 0 &&
			(len(d.ready) > l.PendingPieces || d.cost > int64(2*l.PendingOctets)); f.flush() {
			other.jump(&a.stats)
		}
	}
	a.octets += f.size() - before
	if f.err != nil {
		return f.err
	}
	if f.ended() && !f.closed {
		f.closed, f.closedAt = true, s.time
		a.closing = append(a.closing, f)
	}
	return a.tidy(s.time)
}

func (a *Assembler) begin(key flowKey, s *payloadPart) *openFlow {
	a.stats.TCPFlows++
	f := &openFlow{key: key}
	f.Flow = Flow{ID: a.stats.TCPFlows, Src: s.src, Dst: s.dst, First: s.time, FirstPacket: s.no}
	if s.flags&(flagSYN|flagACK) == flagSYN|flagACK {
		f.Src, f.Dst, f.Opened = s.dst, s.src, true
	}
	if f.begin = a.cfg.Flow; a.cfg.Keys != nil && f.begin != nil {
		f.begin = func(f *Flow) Receiver { return secure(a.cfg.Keys, a.cfg.Secured, f, a.cfg.Flow(f)) }
	}
	f.resumed = a.evicted.take(key) && s.flags&flagSYN == 0
	a.flows[key] = f
	f.in, f.place = a.recent, a.recent.PushBack(f)
	return f
}

// dir returns the index of the direction that src sends in.
func (f *openFlow) dir(src netip.AddrPort) int {
	if src == f.Src {
		return 0
	}
	return 1
}

// isOther reports whether a segment with SYN belongs to another connection, of the same addresses.
// It does not if its sequence number is the known one, or precedes all that was seen.
func (f *openFlow) isOther(s *payloadPart) bool {
	i := f.dir(s.src)
	d, other := &f.dirs[i], &f.dirs[1-i]
	begin := s.seq + 1
	switch {
	case !d.SYN && s.flags&flagACK == 0 && (other.given > 0 || len(other.pending) > 0):
		return true // an answer before the first SYN belongs to an earlier connection
	case d.SYN || d.known:
		return begin != d.base
	case len(d.pending) > 0:
		return d.pos(begin) > d.pending[0].at || d.pending[0].at-d.pos(begin) > maxReorder
	}
	return f.closed
}

// maxReorder is how far before the first byte seen a late SYN may lie, in bytes.
const maxReorder = 1 << 20

// take applies a segment to both directions.
func (f *openFlow) take(s *payloadPart, st *Stats, l Limits) {
	i := f.dir(s.src)
	d, other := &f.dirs[i], &f.dirs[1-i]
	f.packets++
	d.packets = f.packets
	seq := s.seq
	if s.flags&flagSYN != 0 {
		seq++
		d.SYN = true
		d.begin(seq)
		if s.flags&flagACK == 0 && d.given+other.given == 0 && !f.Opened && i == 1 {
			f.turn() // the first packet seen came from the peer
			d, other = other, d
		}
		f.Opened = true
		if s.flags&flagACK != 0 && f.Answered.IsZero() {
			f.Answered = s.time
		}
		if s.flags&flagACK != 0 && !other.known && len(other.pending) == 0 {
			other.begin(s.ack)
		}
	}
	if s.flags&flagACK != 0 {
		other.acknowledged(s.ack, st)
	}
	if s.flags&(flagFIN|flagRST) != 0 && f.Ended.IsZero() {
		f.Ended, f.EndedBy = s.time, f.dir(s.src)
	}
	if s.flags&flagRST != 0 {
		d.RST = true // the payload of a reset is no data (RFC 9293, section 3.5.3)
		return
	}
	if len(s.payload) > 0 || s.short > 0 {
		d.add(seq, s, st, l)
	}
	if s.flags&flagFIN != 0 {
		d.fin(seq + uint32(len(s.payload)+s.short))
	}
}

// turn makes Dst the end that opened the connection.
func (f *openFlow) turn() {
	f.Src, f.Dst = f.Dst, f.Src
	f.dirs[0], f.dirs[1] = f.dirs[1], f.dirs[0]
}

func (f *openFlow) ended() bool {
	return f.dirs[0].RST || f.dirs[1].RST || f.dirs[0].FIN && f.dirs[1].FIN
}

func (f *openFlow) size() int64 { return f.dirs[0].cost + f.dirs[1].cost }

// flush passes on what is in order, of both directions in the order of their packets: no reply
// comes before its request. Where the capture has two packets of different directions the wrong way
// round, the one that acknowledges the other comes after it.
func (f *openFlow) flush() {
	for f.err == nil {
		i, other := 0, 1
		if a, b := f.dirs[0].ready, f.dirs[1].ready; len(a) == 0 ||
			len(b) > 0 && b[0].mark.PacketNo < a[0].mark.PacketNo {
			i, other = 1, 0
		}
		switch {
		case f.may(i, true):
			f.first(i)
		case f.may(other, true):
			f.first(other)
		case f.may(i, false) && f.may(other, false): // each waits for the other
			f.first(i)
		default:
			return
		}
	}
}

// may reports whether nothing has to come before the first piece of a direction that is in order.
// causes: neither what it acknowledges.
func (f *openFlow) may(i int, causes bool) bool {
	d, other := &f.dirs[i], &f.dirs[1-i]
	if len(d.ready) == 0 || other.holdsBack(d.ready[0].mark.PacketNo) {
		return false
	}
	p := &d.ready[0]
	if !causes || f.gone || !other.lacks(p) {
		return true
	}
	if f.packets-p.since < ackSlack {
		return false
	}
	other.absent = len(other.pending) == 0
	return true
}

// first passes on the first piece of a direction that is in order.
func (f *openFlow) first(i int) {
	d, other := &f.dirs[i], &f.dirs[1-i]
	p := d.ready[0]
	d.ready[0] = ordered{}
	if d.ready = d.ready[1:]; len(d.ready) == 0 {
		d.ready = nil
	}
	d.cost -= int64(len(p.data) + markCost)
	if p.acks && other.known {
		p.mark.Acked = max(0, other.pos(p.ack))
	}
	if f.receive(); f.receiver != nil {
		f.err = f.receiver.Octets(i, p.gap, p.data, p.mark)
	}
}

// receive makes sure that the connection has a receiver.
func (f *openFlow) receive() {
	if f.begin != nil {
		f.receiver, f.begin = f.begin(&f.Flow), nil
	}
}
