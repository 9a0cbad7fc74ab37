package wsrm

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
)

// Packet is what one datagram says. Positions count from 1 and on over a roll-over.
type Packet struct {
	// Number is that of the datagram; 0: it only acknowledges, and is not acknowledged. Then the fields down to Units are empty.
	Number uint64
	// Floor is the position below which the source is done with all.
	Floor uint64
	// Request asks for an acknowledgement at once (AckRequested).
	Request bool
	// Closing: Last is the position of the last unit of all (CloseSequence, LastMsgNumber); Terminate: the source is done with the sequence (TerminateSequence).
	Closing, Terminate bool
	Last               uint64
	// Units are in ascending order of their numbers, and not below Floor.
	Units []Unit

	HasAck bool
	Ack    Ack
}

// Unit is a message, or a part of it.
type Unit struct {
	Number      uint64
	First, Last bool // of its message
	Payload     []byte
}

// Ack is an acknowledgement of the other direction.
type Ack struct {
	// Instance is that of the destination.
	Instance uint64
	// Done: everything up to there is; Echo is the greatest number of a datagram that arrived.
	Done, Echo uint64
	// Final: all up to the last is done (Final, CloseSequenceResponse); Terminated: TerminateSequenceResponse; Unknown: the fault UnknownSequence.
	Final, Terminated, Unknown bool
	// Ranges above Done arrived. Nacks arrived and could not be kept. Both ascend and do not touch.
	Ranges, Nacks []Range
}

// Range is positions First to Last, both included.
type Range struct{ First, Last uint64 }

// Codec writes and reads packets as octets (docs/wire-format.md says when a transport uses it). Limit is the greatest number of a sequence, at which it rolls over.
type Codec struct{ Limit uint64 }

const (
	flagNumber = 1 << iota
	flagRequest
	flagClosing
	flagTerminate
	flagAck
	flagSequence // Floor is of a sequence other than the first
	knownFlags   = 1<<iota - 1
)

const (
	ackFinal = 1 << iota
	ackTerminated
	ackUnknown
	ackRanges
	ackNacks
	ackSequence   // Done is of a sequence other than the first
	knownAckFlags = 1<<iota - 1
)

// split makes sequence and number of a position; position 0 is number 0 of sequence 0.
func (c Codec) split(position uint64) (sequence, number uint64) {
	if position == 0 {
		return 0, 0
	}
	return (position - 1) / c.Limit, (position-1)%c.Limit + 1
}

// join is the reverse; it fails on numbers above the limit and sequences that do not fit.
func (c Codec) join(sequence, number uint64) (uint64, bool) {
	if number > c.Limit || number == 0 && sequence > 0 {
		return 0, false
	}
	high, low := bits.Mul64(sequence, c.Limit)
	sum, carry := bits.Add64(low, number, 0)
	return sum, high == 0 && carry == 0 && sum <= maxPosition
}

// maxPosition keeps sums of positions and windows within 64 bits.
const maxPosition = 1<<64 - 1<<20

// Append writes p behind dst.
func (c Codec) Append(dst []byte, p *Packet) []byte {
	at := len(dst)
	dst = append(dst, 0)
	var flags byte
	if p.HasAck {
		flags |= flagAck
	}
	if p.Number != 0 {
		flags |= flagNumber
		flags |= when(p.Request, flagRequest) | when(p.Closing, flagClosing) | when(p.Terminate, flagTerminate)
		dst = binary.AppendUvarint(dst, p.Number)
		sequence, number := c.split(p.Floor)
		if sequence > 0 {
			flags |= flagSequence
			dst = binary.AppendUvarint(dst, sequence)
		}
		dst = binary.AppendUvarint(dst, number)
		if p.Closing {
			dst = binary.AppendUvarint(dst, p.Last+1-p.Floor)
		}
	}
	dst[at] = flags
	if p.HasAck {
		dst = c.appendAck(dst, &p.Ack)
	}
	return appendUnits(dst, p)
}

func when(b bool, flag byte) byte {
	if b {
		return flag
	}
	return 0
}

func (c Codec) appendAck(dst []byte, a *Ack) []byte {
	sequence, number := c.split(a.Done)
	dst = append(dst, when(a.Final, ackFinal)|when(a.Terminated, ackTerminated)|when(a.Unknown, ackUnknown)|when(len(a.Ranges) > 0, ackRanges)|when(len(a.Nacks) > 0, ackNacks)|when(sequence > 0, ackSequence))
	dst = binary.AppendUvarint(dst, a.Instance)
	if sequence > 0 {
		dst = binary.AppendUvarint(dst, sequence)
	}
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, a.Echo)
	dst = appendRanges(dst, a.Done, a.Ranges)
	return appendRanges(dst, a.Done, a.Nacks)
}

// appendRanges writes the gap before each range and its length, both less one; nothing if there are none.
func appendRanges(dst []byte, done uint64, ranges []Range) []byte {
	if len(ranges) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(ranges)))
	for _, r := range ranges {
		dst = binary.AppendUvarint(dst, r.First-done-1)
		dst = binary.AppendUvarint(dst, r.Last-r.First)
		done = r.Last
	}
	return dst
}

// appendUnits writes runs: how far behind the one before, how many units, and the units.
func appendUnits(dst []byte, p *Packet) []byte {
	next := p.Floor
	for i := 0; i < len(p.Units); {
		n := 1
		for i+n < len(p.Units) && p.Units[i+n].Number == p.Units[i].Number+uint64(n) {
			n++
		}
		dst = binary.AppendUvarint(dst, p.Units[i].Number-next)
		dst = binary.AppendUvarint(dst, uint64(n))
		for _, u := range p.Units[i : i+n] {
			part := !u.First || !u.Last
			dst = binary.AppendUvarint(dst, uint64(len(u.Payload))<<1|uint64(when(part, 1)))
			if part {
				dst = append(dst, when(u.First, 1)|when(u.Last, 2))
			}
			dst = append(dst, u.Payload...)
		}
		next = p.Units[i].Number + uint64(n)
		i += n
	}
	return dst
}

var (
	errFlags    = errors.New("flags that do not exist, or do not go together")
	errNumbers  = errors.New("numbers beyond the limit, out of order or empty")
	errOverlong = errors.New("octets behind the end")
)

// Parse reads b into p, whose slices it uses again; payloads alias b. It takes work and memory in proportion to b. Errors: Malformed.
func (c Codec) Parse(b []byte, p *Packet) error {
	*p = Packet{Units: p.Units[:0], Ack: Ack{Ranges: p.Ack.Ranges[:0], Nacks: p.Ack.Nacks[:0]}}
	r := bin.NewCursor(b, 0)
	flags := r.U8()
	if r.Err() == nil && (flags&^knownFlags != 0 || flags&(flagNumber|flagAck) == 0 || flags&flagNumber == 0 && flags&^flagAck != 0) {
		r.Fail(errFlags)
	}
	if flags&flagNumber != 0 {
		c.parseHead(&r, flags, p)
	}
	if flags&flagAck != 0 {
		p.HasAck = true
		c.parseAck(&r, &p.Ack)
	}
	if p.Number != 0 {
		parseUnits(&r, p)
	}
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(errOverlong)
	}
	if err := r.Err(); err != nil {
		return &Error{Code: Malformed, Err: err}
	}
	return nil
}

func (c Codec) position(r *bin.Cursor, later bool) uint64 {
	var sequence uint64
	if later {
		sequence = r.Uvarint()
	}
	position, ok := c.join(sequence, r.Uvarint())
	if !ok || later && sequence == 0 {
		r.Fail(errNumbers)
	}
	return position
}

func (c Codec) parseHead(r *bin.Cursor, flags byte, p *Packet) {
	p.Number = r.Uvarint()
	p.Floor = c.position(r, flags&flagSequence != 0)
	p.Request, p.Closing, p.Terminate = flags&flagRequest != 0, flags&flagClosing != 0, flags&flagTerminate != 0
	if p.Number == 0 || p.Floor == 0 {
		r.Fail(errNumbers)
		return
	}
	if p.Closing {
		ahead := r.Uvarint()
		if ahead > maxPosition-p.Floor {
			r.Fail(errNumbers)
		}
		p.Last = p.Floor - 1 + ahead
	}
}

func (c Codec) parseAck(r *bin.Cursor, a *Ack) {
	flags := r.U8()
	if flags&^knownAckFlags != 0 {
		r.Fail(errFlags)
	}
	a.Final, a.Terminated, a.Unknown = flags&ackFinal != 0, flags&ackTerminated != 0, flags&ackUnknown != 0
	a.Instance = r.Uvarint()
	a.Done = c.position(r, flags&ackSequence != 0)
	a.Echo = r.Uvarint()
	if flags&ackRanges != 0 {
		a.Ranges = parseRanges(r, a.Done, a.Ranges)
	}
	if flags&ackNacks != 0 {
		a.Nacks = parseRanges(r, a.Done, a.Nacks)
	}
}

func parseRanges(r *bin.Cursor, done uint64, ranges []Range) []Range {
	n := r.Count(maxRanges)
	if n == 0 {
		r.Fail(errNumbers)
	}
	for range n {
		gap, more := r.Uvarint(), r.Uvarint()
		if r.Err() != nil || gap >= maxPosition-done || more >= maxPosition-done-gap || len(ranges) > 0 && gap == 0 {
			r.Fail(errNumbers)
			return ranges
		}
		first := done + gap + 1
		ranges = append(ranges, Range{first, first + more})
		done = first + more
	}
	return ranges
}

func parseUnits(r *bin.Cursor, p *Packet) {
	next := p.Floor
	for run := 0; r.Len() > 0; run++ {
		ahead, n := r.Uvarint(), r.Uvarint()
		// Each unit takes an octet at least, so that a run is no longer than what is left.
		if r.Err() != nil || n == 0 || n > uint64(r.Len()) || next+n > maxPosition || ahead > maxPosition-next-n || run > 0 && ahead == 0 {
			r.Fail(errNumbers)
			return
		}
		next += ahead
		for range n {
			size := r.Uvarint()
			u := Unit{Number: next, First: true, Last: true}
			if size&1 != 0 {
				part := r.U8()
				u.First, u.Last = part&1 != 0, part&2 != 0
				if part >= 3 { // both: a whole message, which has the shorter form
					r.Fail(errFlags)
				}
			}
			if size>>1 > uint64(r.Len()) {
				r.Fail(errNumbers)
				return
			}
			u.Payload = r.Take(int(size >> 1))
			p.Units = append(p.Units, u)
			next++
		}
	}
}

// uvarintLen is how many octets v takes.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
