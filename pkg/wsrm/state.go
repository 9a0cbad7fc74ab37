package wsrm

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// stateVersion is the first octet of a stored state.
const stateVersion = 1

const (
	stateOrdered = 1 << iota
	stateClosed
	stateTerminated
	stateEnded
)

// AppendState writes what must outlive a crash behind dst, as one value: what was accepted and is not done, with its octets, and the filter of duplicates. Times and windows are not in it.
func (e *Engine) AppendState(dst []byte) []byte {
	e.changed = false
	s, d := &e.out, &e.in
	dst = append(dst, stateVersion, byte(e.cfg.Assurance), when(e.cfg.Ordered, stateOrdered)|when(d.closed, stateClosed)|when(d.terminated, stateTerminated)|when(d.ended, stateEnded))
	dst = binary.AppendUvarint(dst, e.cfg.Limit)
	for _, v := range [...]uint64{s.done, s.last, s.packet, uint64(s.kept()), uint64(s.reason), s.instance, d.instance, d.last, d.done, d.high, d.delivered} {
		dst = binary.AppendUvarint(dst, v)
	}
	for position := s.done + 1; position <= s.last && s.phase < phaseTerminating; position++ { // then nothing is sent any more
		u := s.unit(position)
		dst = append(dst, when(u.first, 1)|when(u.last, 2))
		dst = bin.AppendBytes(dst, u.payload)
	}
	for position := d.done + 1; position <= d.high; position++ {
		u := d.unit(position)
		switch {
		case u.state == inDone:
			dst = append(dst, 1)
		case u.state == inDelivered && u.first && u.begun:
			dst = append(dst, 2)
			dst = binary.AppendUvarint(dst, u.other-position)
			position = u.other
		default:
			dst = append(dst, 0)
		}
	}
	return dst
}

var errState = errors.New("fields that contradict each other, or the configuration")

// Restore makes an engine that goes on from a stored state, of which it keeps a copy. What was under way is sent again, but for at-most-once, where it is reported as [Lost] in the first step; messages begun and not
// committed are reported as [Unknown]. Errors: BadConfig, BadState.
func Restore(cfg Config, state []byte) (*Engine, error) {
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	r := bin.NewCursor(slices.Clone(state), 0)
	version, assurance, flags := r.U8(), Assurance(r.U8()), r.U8()
	limit := r.Uvarint()
	if r.Err() == nil && (version != stateVersion || assurance != e.cfg.Assurance || flags&stateOrdered != 0 != e.cfg.Ordered || limit != e.cfg.Limit || flags >= stateEnded<<1) {
		r.Fail(errState)
	}
	e.restoreSource(&r)
	e.restoreDestination(&r, flags)
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(errState)
	}
	if err := r.Err(); err != nil {
		return nil, &Error{Code: BadState, Err: err}
	}
	return e, nil
}

func (e *Engine) restoreSource(r *bin.Cursor) {
	s := &e.out
	s.done, s.last, s.packet = r.Uvarint(), r.Uvarint(), r.Uvarint()
	phases, reason := r.Uvarint(), r.Uvarint()
	s.instance, e.in.instance = r.Uvarint(), r.Uvarint()
	window := uint64(e.cfg.Window)
	if s.last < s.done || s.last-s.done > window || s.last > maxPosition-window || s.packet > maxPosition-restoreSkip || phases > uint64(phaseEnded) || reason > uint64(Unrecognized) {
		r.Fail(errState)
		s.done, s.last = 0, 0
		return
	}
	s.units = ringFor(s.units, s.done, s.last)
	s.phase, s.reason = phase(phases), Reason(reason)
	s.packet += restoreSkip
	s.spoke = true
	// Only numbers that were never given out are known to be unsent.
	s.sent = s.last
	s.lostAt = s.done + 1
}

func (e *Engine) restoreDestination(r *bin.Cursor, flags byte) {
	s, d := &e.out, &e.in
	d.last, d.done, d.high, d.delivered = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	if d.high < d.done || d.high-d.done > uint64(e.cfg.Window) || d.high > maxPosition {
		r.Fail(errState)
	}
	if r.Err() != nil {
		return
	}
	d.units = ringFor(d.units, d.done, d.high)
	for position := s.done + 1; position <= s.last && s.phase < phaseTerminating && r.Err() == nil; position++ {
		part := r.U8()
		u := s.unit(position)
		*u = outUnit{payload: r.Bytes(uint64(e.cfg.Hold)), first: part&1 != 0, last: part&2 != 0, state: outLost}
		if part > 3 || s.held+len(u.payload) > e.cfg.Hold || len(u.payload) > e.cfg.maxUnit() {
			r.Fail(errState)
		}
		s.held += len(u.payload)
		s.waiting += len(u.payload)
		s.lost++
	}
	e.resume()
	d.closed, d.terminated, d.ended = flags&stateClosed != 0, flags&stateTerminated != 0, flags&stateEnded != 0
	if !d.cfg.lossy() {
		d.delivered = d.done
	}
	if d.instance++; d.instance == 0 {
		r.Fail(errState)
	}
	d.instance = max(d.instance, e.cfg.Instance)
	for position := d.done + 1; position <= d.high && r.Err() == nil; position++ {
		switch r.U8() {
		case 0:
		case 1:
			d.unit(position).state = inDone
		case 2:
			last := position + uint64(r.Count(uint64(e.cfg.Window)))
			if last > d.high {
				r.Fail(errState)
				return
			}
			d.unknown = append(d.unknown, Range{position, last})
			for ; position < last; position++ {
				d.unit(position).state = inDone
			}
			d.unit(position).state = inDone
		default:
			r.Fail(errState)
		}
	}
	d.advance()
	if d.delivered > d.high {
		r.Fail(errState)
	}
}

// resume has the source go on where its state leaves it.
func (e *Engine) resume() {
	s := &e.out
	if e.cfg.Assurance == AtMostOnce && s.last > s.done && s.phase < phaseTerminating {
		s.forgotten = Range{s.done + 1, s.last}
		s.advance(s.last)
	}
	if s.phase == phaseClosing && s.done == s.last || s.phase == phaseTerminating {
		e.say()
	}
}
