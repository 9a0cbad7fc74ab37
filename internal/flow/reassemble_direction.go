package flow

import "slices"

// assembly puts one direction in order. Positions count bytes. Until the beginning is known they
// count from the first byte seen and may be negative, afterwards they are offsets.
type assembly struct {
	End
	ready   []ordered // pieces in order that wait for earlier ones of the other direction
	given   int64     // bytes that are in order
	known   bool      // the beginning of the direction is known, or assumed
	opening bool      // and that is where the connection began
	base    uint32    // sequence number of offset 0, if known
	next    int64     // the offset after what is in order
	nextSeq uint32    // its sequence number; before known, that of position 0
	gap     int64     // bytes missing before the next ones
	packets int       // of the connection so far
	pending []latePiece
	oldest  int   // a packet number: no piece in pending came before it
	waiting int   // bytes in pending
	cost    int64 // what pending and ready count against limits
	finAt   int64
	ackAt   int64 // highest position acknowledged
	sure    int   // packets that acknowledged what waits
	absent  bool  // what its peer acknowledged did not come, and nothing else did
}

// latePiece is data that waits for missing bytes before it.
type latePiece struct {
	at   int64
	data []byte
	mark Mark
	ack  uint32 // what it acknowledges of the other direction, if acks
	acks bool
}

// ordered is a piece that is in order; gap bytes are missing before it. since counts the packets of
// the connection up to the one that put it in order.
type ordered struct {
	latePiece
	gap   int64
	since int
}

func (p latePiece) end() int64 { return p.at + int64(len(p.data)) }

// pos returns the position of a sequence number: the one nearest to next.
func (d *assembly) pos(seq uint32) int64 { return d.next + int64(int32(seq-d.nextSeq)) }

// begin reports that the direction begins at a sequence number.
func (d *assembly) begin(seq uint32) {
	if d.known {
		return
	}
	d.opening = true
	if len(d.pending) == 0 {
		d.nextSeq = seq
	}
	d.establish(min(d.pos(seq), d.lowest()))
}

// lowest returns the lowest position that waits, or next.
func (d *assembly) lowest() int64 {
	if len(d.pending) > 0 {
		return d.pending[0].at
	}
	return d.next
}

// establish makes a position offset 0.
func (d *assembly) establish(at int64) {
	d.nextSeq += uint32(at - d.next)
	for i := range d.pending {
		d.pending[i].at -= at
	}
	d.finAt -= at
	d.ackAt = max(0, d.ackAt-at)
	d.base, d.known, d.next = d.nextSeq, true, 0
}

// add takes the payload of a segment.
func (d *assembly) add(seq uint32, s *payloadPart, st *Stats, l Limits) {
	if !d.known && len(d.pending) == 0 && d.given == 0 {
		d.nextSeq, d.next = seq, 0
	}
	at := d.pos(seq)
	data := s.payload
	if d.known && at < d.next {
		n := min(int64(len(data)), d.next-at)
		st.Repeated += n
		at, data = at+n, data[n:]
	}
	if len(data) == 0 {
		return
	}
	p := latePiece{at, data, Mark{Time: s.time, PacketNo: s.no, Comments: s.comments}, s.ack, s.flags&flagACK != 0}
	if d.known && at == d.next && len(d.pending) == 0 {
		d.give(p, st)
		return
	}
	d.insert(p, st)
	d.drain(st)
	for d.waiting > l.PendingOctets || len(d.pending) > l.PendingPieces {
		d.jump(st)
	}
}

// insert puts the new bytes of p into pending; where pieces overlap, the first counts.
func (d *assembly) insert(p latePiece, st *Stats) {
	if len(d.pending) == 0 {
		d.oldest = p.mark.PacketNo
	}
	i, _ := slices.BinarySearchFunc(d.pending, p.at, func(q latePiece,
		at int64) int {
		return int(min(max(q.end()-at-1, -1), 1))
	})
	for len(p.data) > 0 {
		n := len(p.data)
		if i < len(d.pending) {
			q := d.pending[i]
			if q.at <= p.at {
				over := int(min(int64(n), q.end()-p.at))
				st.Repeated += int64(over)
				p.at, p.data = p.at+int64(over), p.data[over:]
				i++
				continue
			}
			n = int(min(int64(n), q.at-p.at))
		}
		q := p
		q.data = slices.Clone(p.data[:n])
		d.pending = slices.Insert(d.pending, i, q)
		d.waiting += n
		d.cost += int64(n + markCost)
		p.at, p.data = p.at+int64(n), p.data[n:]
		p.mark.Comments = nil
		i++
	}
}

// drain passes on what is in order now.
func (d *assembly) drain(st *Stats) {
	n := 0
	for d.known && n < len(d.pending) && d.pending[n].at == d.next {
		p := d.pending[n]
		d.waiting -= len(p.data)
		d.cost -= int64(len(p.data) + markCost)
		d.give(p, st)
		n++
	}
	if d.pending = slices.Delete(d.pending, 0, n); n > 0 && len(d.pending) > 0 {
		d.oldest = slices.MinFunc(d.pending, func(a,
			b latePiece) int {
			return a.mark.PacketNo - b.mark.PacketNo
		}).mark.PacketNo
	}
}

// give passes on a piece that is in order.
func (d *assembly) give(p latePiece, st *Stats) {
	gap := d.gap
	if d.given == 0 && !d.opening {
		gap = -1
	}
	d.gap = 0
	d.next += int64(len(p.data))
	d.nextSeq += uint32(len(p.data))
	d.given += int64(len(p.data))
	st.TCPOctets += int64(len(p.data))
	d.ready = append(d.ready, ordered{p, gap, d.packets})
	d.cost += int64(len(p.data) + markCost)
}

// holdsBack reports whether something waits here that came before a packet of the other direction.
func (d *assembly) holdsBack(packet int) bool { return len(d.pending) > 0 && d.oldest < packet }

// lacks reports whether bytes that a piece of the other direction acknowledges were not passed on
// yet.
func (d *assembly) lacks(p *ordered) bool {
	if !p.acks || !d.known || d.absent && d.given == 0 {
		return false
	}
	passed := d.next
	if len(d.ready) > 0 {
		passed = d.ready[0].at
	}
	return d.pos(p.ack) > passed && (!d.FIN || passed < d.finAt)
}

// jump stops waiting for what is missing before pending.
func (d *assembly) jump(st *Stats) {
	if !d.known {
		d.establish(d.lowest())
	} else if missing := d.lowest() - d.next; missing > 0 {
		d.gap += missing
		d.nextSeq += uint32(missing)
		d.next += missing
		st.Gaps++
		st.MissingOctets += missing
	}
	d.drain(st)
}

// acknowledged records how far the peer has received the direction. If the peer has what waits
// here, the missing bytes before that will not come again.
func (d *assembly) acknowledged(ack uint32, st *Stats) {
	if !d.known && len(d.pending) == 0 {
		return
	}
	at, seen := d.pos(ack), max(d.next, d.ackAt)
	if n := len(d.pending); n > 0 {
		seen = max(seen, d.pending[n-1].end())
	}
	if at > seen+maxLost {
		return
	}
	d.ackAt = max(d.ackAt, at)
	if len(d.pending) == 0 || d.pending[0].end() > at {
		d.sure = 0
		return
	}
	if d.sure++; d.sure < ackSlack {
		return
	}
	for d.sure = 0; len(d.pending) > 0 && d.pending[0].end() <= at; at = d.pos(ack) {
		d.jump(st)
	}
}

// ackSlack is how many packets have to acknowledge what waits before the gap before it counts as
// missing, and for how many packets a piece waits for bytes that it acknowledges: captures, too,
// have packets out of order, above all those of different directions.
const ackSlack = 16

// maxLost is how far beyond all that was seen an acknowledgement or a FIN is believed, in bytes.
const maxLost = 64 << 20

func (d *assembly) fin(seq uint32) {
	if !d.known && len(d.pending) == 0 {
		d.nextSeq, d.next = seq, 0
	}
	d.FIN, d.finAt = true, d.pos(seq)
}

// finish stops all waiting and computes what is missing at the end.
func (d *assembly) finish(st *Stats) {
	for len(d.pending) > 0 {
		d.jump(st)
	}
	end := d.ackAt
	switch {
	case d.FIN:
		end = d.finAt
	case end == d.next+1: // most likely a FIN that was not captured
		end = d.next
	}
	if missing := end - d.next; d.known && missing > 0 && missing <= maxLost {
		d.GapAfter = missing
		st.Gaps++
		st.MissingOctets += missing
	}
}
