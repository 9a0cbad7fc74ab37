package window

import (
	"encoding/binary"
	"errors"

	"github.com/hhfr/hhfr/internal/bin"
)

// errState is what a stored state breaks.
var errState = errors.New("fields that contradict each other, or the configuration")

// AppendNumbers appends how far the sender is.
func (s *Sender) AppendNumbers(dst []byte) []byte {
	for _, v := range [...]uint64{s.Done, s.Last, s.Packet} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

// AppendUnits appends what was accepted and is not done.
func (s *Sender) AppendUnits(dst []byte) []byte {
	for number := s.Done + 1; number <= s.Last; number++ {
		u := s.unit(number)
		dst = append(dst, when(u.first, 1)|when(u.last, 2))
		dst = bin.AppendBytes(dst, u.payload)
	}
	return dst
}

// RestoreNumbers reads what AppendNumbers wrote.
func (s *Sender) RestoreNumbers(r *bin.Cursor) {
	s.Done, s.Last, s.Packet = r.Uvarint(), r.Uvarint(), r.Uvarint()
	beyond := s.Last > MaxNumber-s.window || s.Packet > MaxNumber-RestoreSkip
	if s.Last < s.Done || s.Last-s.Done > s.window || beyond {
		r.Fail(errState)
		s.Done, s.Last = 0, 0
		return
	}
	s.units = ringFor(s.units, s.Done, s.Last)
	s.Packet += RestoreSkip
	// Only numbers that were never given out are known to be unsent.
	s.Sent = s.Last
	s.lostAt = s.Done + 1
}

// RestoreUnits reads what AppendUnits wrote, units of at most size bytes; all of it is to be sent
// again.
func (s *Sender) RestoreUnits(r *bin.Cursor, size int) {
	for number := s.Done + 1; number <= s.Last && r.Err() == nil; number++ {
		flags := r.U8()
		u := s.unit(number)
		*u = sentUnit{payload: r.Bytes(uint64(s.hold)), first: flags&1 != 0, last: flags&2 != 0, state: lost}
		if flags > 3 || s.held+len(u.payload) > s.hold || len(u.payload) > size {
			r.Fail(errState)
		}
		s.held += len(u.payload)
		s.Waiting += len(u.payload)
		s.lost++
	}
}

const (
	flagClosed = 1 << (iota + 1) // bit 0 is the engine's
	flagTerminated
	flagEnded
	// StateFlags are the bits that a receiver has in the flags of a state.
	StateFlags = flagClosed | flagTerminated | flagEnded
)

// Flags are what of the receiver stands in the flags of a state.
func (d *Filter) Flags() byte {
	return when(d.closed, flagClosed) | when(d.Terminated, flagTerminated) | when(d.Ended, flagEnded)
}

// AppendNumbers appends how far the receiver is.
func (d *Filter) AppendNumbers(dst []byte) []byte {
	for _, v := range [...]uint64{d.Instance, d.last, d.Done, d.high, d.delivered} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

// AppendUnits appends the filter of duplicates.
func (d *Filter) AppendUnits(dst []byte) []byte {
	for number := d.Done + 1; number <= d.high; number++ {
		u := d.unit(number)
		switch {
		case u.state == done:
			dst = append(dst, 1)
		case u.state == delivered && u.first && u.begun:
			dst = append(dst, 2)
			dst = binary.AppendUvarint(dst, u.other-number)
			number = u.other
		default:
			dst = append(dst, 0)
		}
	}
	return dst
}

// RestoreNumbers reads what AppendNumbers wrote: another life begins.
func (d *Filter) RestoreNumbers(r *bin.Cursor) {
	d.Instance = r.Uvarint() + 1
	d.last, d.Done, d.high, d.delivered = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	if d.Instance == 0 || d.high < d.Done || d.high-d.Done > uint64(d.cfg.Window) || d.high > MaxNumber {
		r.Fail(errState)
		d.high = d.Done
		return
	}
	d.units = ringFor(d.units, d.Done, d.high)
}

// RestoreUnits reads what AppendUnits wrote, and gives the messages that were begun and not
// committed.
func (d *Filter) RestoreUnits(r *bin.Cursor, flags byte) (begun []Range) {
	d.closed, d.Terminated, d.Ended = flags&flagClosed != 0, flags&flagTerminated != 0, flags&flagEnded != 0
	if d.delivered > d.high {
		r.Fail(errState)
	}
	d.delivered = d.Done
	for number := d.Done + 1; number <= d.high && r.Err() == nil; number++ {
		switch r.U8() {
		case 0:
		case 1:
			d.unit(number).state = done
		case 2:
			last := number + uint64(r.Count(uint64(d.cfg.Window)))
			if last > d.high {
				r.Fail(errState)
				return nil
			}
			begun = append(begun, Range{number, last})
			for ; number < last; number++ {
				d.unit(number).state = done
			}
			d.unit(number).state = done
		default:
			r.Fail(errState)
		}
	}
	d.advance()
	return begun
}
