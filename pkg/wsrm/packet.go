package wsrm

import (
	"encoding/binary"
	"errors"
	"math/bits"
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

// uvarintLen is how many octets v takes.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
