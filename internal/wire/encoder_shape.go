package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

// Announce appends what must stand before content under a program, of a message on a lane. A
// transfer that it returns must come to its end before ([Encoder.Piece]); nil: nothing is missing.
func (e *Encoder) Announce(lane uint64, part *Part, head bool, now time.Time) *Transfer {
	p := part.Program
	if p == nil {
		return nil
	}
	s := e.shapes.take(p, e.cfg.Limits)
	if s == nil && uint64(len(p.Shape().Octets())) <= e.cfg.Limits.MaxShapeBytes && e.at > e.syncEnd {
		e.Sync(now)
		s = e.shapes.take(p, e.cfg.Limits)
	}
	if s == nil {
		return nil // without a number it goes as text
	}
	if s.announced {
		s.due = true // the shape of the body must not take the place of that of the head
		return nil
	}
	if s.transfer != nil {
		return s.transfer
	}
	s.plain = nil
	fp := p.Shape().Fingerprint()
	if e.refers(s, fp) {
		e.append(frame.Shape{Number: s.number, Form: frame.Reference, Fingerprint: fp})
		s.announced, s.due, s.referred = true, true, true
		return nil
	}
	own := e.own(p)
	full, doubtful, sketch := e.shapes.bases.packed(p.Shape(), true, own)
	if on := e.lanes.of(lane); e.cfg.Origin.Stages&Plain != 0 && s.vacant && !on.onlyPacked() {
		text, z, window := plainText(part, head, e.MaxSegment()), e.cfg.Compression, &on.window
		if text != nil && z.sizeRecalled(window, text) <= shapeFrame+len(full)+
			sizeOfContent(e.cfg.Origin.Stages, z, window, part) {
			s.plain, s.due = &plainPart{text, part.Content}, true
			return nil
		}
	}
	e.cfg.Peer.Learned(p)
	e.shapes.bases.keep(p.Shape(), len(full), sketch)
	t := &Transfer{full: full, number: s.number, sent: s, since: e.resynced}
	// A peer that has lost the description asks for the shape in full.
	s.referred, s.transfer = doubtful, t
	if e.Piece(t, now) {
		return nil
	}
	return t
}

// refers reports whether a shape is announced by reference.
func (e *Encoder) refers(s *sentShape, fp shape.Fingerprint) bool {
	if e.resynced != nil {
		if _, told := e.resynced.shapes[fp]; !told {
			return false
		}
	}
	has, sure := e.cfg.Peer.Has(fp)
	return e.cfg.Refer || sure || has && e.shapes.pin(s, e.cfg.Limits)
}

// IsAnnounced reports whether nothing must stand before content under a program, nil for text. Of
// a message's two shapes neither takes the other's place meanwhile.
func (e *Encoder) IsAnnounced(p *program.Program) bool {
	if p == nil {
		return true
	}
	s := e.shapes.find(p)
	if s == nil || !s.announced {
		return false
	}
	s.due = true
	return true
}

// own is the own shape of what describes a shape; nil: the peer has none, or who else reads.
func (e *Encoder) own(p *program.Program) *transit.Own {
	if peer, ok := e.cfg.Peer.(DescribedPeer); ok && e.resynced == nil {
		return peer.Own(p)
	}
	return nil
}

// Lacks begins to send a shape in full that the peer was referred to, and lacks. For a number that
// stands for nothing any more, as the asking took very long, it is a placeholder: the peer then
// refuses what it holds, where it would wait for ever. It is nil for one that the peer was told in
// full.
func (e *Encoder) Lacks(number uint64) *Transfer {
	s := e.shapes.byNumber.Get(number)
	if s == nil {
		t := &Transfer{number: number}
		t.full, _ = e.shapes.bases.pack(placeholder(), false, nil)
		return t
	}
	if s.pinned {
		s.pinned = false
		e.shapes.pinned--
	}
	if !s.referred {
		return nil
	}
	s.referred = false
	if s.transfer == nil {
		e.cfg.Peer.Learned(s.program)
		s.transfer = &Transfer{number: number, sent: s, since: e.resynced}
		s.transfer.full, _ = e.shapes.bases.pack(s.program.Shape(), false, nil)
	}
	return s.transfer
}

// Piece appends the next piece of a shape, or all those of a short one; done: it was the last.
func (e *Encoder) Piece(t *Transfer, now time.Time) (done bool) {
	for again := true; again; again = t.at < len(t.full) && len(t.full) <= shapeAtOnce {
		n := min(len(t.full)-t.at, int(e.cfg.Limits.MaxFragment))
		e.syncIfDue(n+frame.ShapeOverhead, now)
		e.append(frame.Shape{Number: t.number, Form: frame.Full, Total: uint64(len(t.full)), Offset: uint64(t.at),
			Piece: t.full[t.at : t.at+n]})
		t.at += n
	}
	if t.at < len(t.full) {
		return false
	}
	if t.sent == nil {
		return true
	}
	// Of what began before a resync a decoder that began there lacks pieces.
	whole := t.since == e.resynced
	t.sent.announced, t.sent.due, t.sent.transfer = whole, whole, nil
	if whole && e.resynced != nil {
		e.resynced.tell(t.sent.program.Shape().Fingerprint())
	}
	return true
}
