package window

import (
	"encoding/binary"
	"math/bits"
)

// Packet is what one end tells the other (docs/wire-format.md, section 12.2).
type Packet struct {
	// Number is that of the packet; 0: it only acknowledges, and is not acknowledged. Then the
	// fields down to Units are empty.
	Number uint64
	// Floor is the number below which the sender is done with all.
	Floor uint64
	// Request asks for an acknowledgement at once (AckRequested).
	Request bool
	// Closing: Last is the number of the last unit of all (CloseSequence, LastMsgNumber).
	// Terminate: the sender is done with the sequence (TerminateSequence).
	Closing, Terminate bool
	Last               uint64
	// Units are in ascending order of their numbers, and not below Floor.
	Units []Unit

	HasAck bool
	Ack    AckPacket
}

// Unit is a message, or a fragment of it.
type Unit struct {
	Number      uint64
	First, Last bool // of its message
	Payload     []byte
}

// AckPacket is an acknowledgement of the other direction.
type AckPacket struct {
	// Instance is that of the receiver.
	Instance uint64
	// Done: everything up to there is. Echo is the greatest number of a packet that arrived.
	Done, Echo uint64
	// Final: all up to the last is done (Final, CloseSequenceResponse). Terminated:
	// TerminateSequenceResponse. Unknown: the fault UnknownSequence.
	Final, Terminated, Unknown bool
	// Ranges above Done arrived. Nacks arrived and could not be kept. Both ascend and do not touch.
	Ranges, Nacks []Range
}

// Clear makes a packet an empty one, and keeps its memory.
func (p *Packet) Clear() {
	*p = Packet{Units: p.Units[:0], Ack: AckPacket{Ranges: p.Ack.Ranges[:0], Nacks: p.Ack.Nacks[:0]}}
}

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

// split makes a sequence, and a number in it, of a number that counts on; 0 is number 0 of the
// first.
func split(number uint64) (sequence, inSequence uint64) {
	if number == 0 {
		return 0, 0
	}
	return (number - 1) / maxInSequence, (number-1)%maxInSequence + 1
}

// join is the reverse; it fails on numbers above the greatest and sequences that do not fit.
func join(sequence, inSequence uint64) (uint64, bool) {
	if inSequence > maxInSequence || inSequence == 0 && sequence > 0 {
		return 0, false
	}
	high, low := bits.Mul64(sequence, maxInSequence)
	sum, carry := bits.Add64(low, inSequence, 0)
	return sum, high == 0 && carry == 0 && sum <= MaxNumber
}

// Append appends the packet to dst.
func (p *Packet) Append(dst []byte) []byte {
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
		sequence, number := split(p.Floor)
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
		dst = p.Ack.append(dst)
	}
	return appendUnits(dst, p)
}

func when(b bool, flag byte) byte {
	if b {
		return flag
	}
	return 0
}

func (a *AckPacket) append(dst []byte) []byte {
	sequence, number := split(a.Done)
	dst = append(dst, when(a.Final, ackFinal)|when(a.Terminated, ackTerminated)|when(a.Unknown, ackUnknown)|
		when(len(a.Ranges) > 0, ackRanges)|when(len(a.Nacks) > 0, ackNacks)|when(sequence > 0, ackSequence))
	dst = binary.AppendUvarint(dst, a.Instance)
	if sequence > 0 {
		dst = binary.AppendUvarint(dst, sequence)
	}
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, a.Echo)
	dst = appendRanges(dst, a.Done, a.Ranges)
	return appendRanges(dst, a.Done, a.Nacks)
}

// Len is how many bytes the acknowledgement takes in a packet.
func (a *AckPacket) Len() int {
	n := 1 + UvarintLen(a.Instance) + numberLen(a.Done) + UvarintLen(a.Echo)
	for _, ranges := range [...][]Range{a.Ranges, a.Nacks} {
		if len(ranges) == 0 {
			continue
		}
		n += UvarintLen(uint64(len(ranges)))
		done := a.Done
		for _, r := range ranges {
			n += UvarintLen(r.First-done-1) + UvarintLen(r.Last-r.First)
			done = r.Last
		}
	}
	return n
}

// HeadLen is how many bytes a packet with a number takes before its acknowledgement and its units.
func (p *Packet) HeadLen() int {
	n := 1 + UvarintLen(p.Number) + numberLen(p.Floor)
	if p.Closing {
		n += UvarintLen(p.Last + 1 - p.Floor)
	}
	return n
}

// Len is how many bytes a unit takes in a run.
func (u *Unit) Len() int {
	n := UvarintLen(uint64(len(u.Payload))<<1) + len(u.Payload)
	if !u.First || !u.Last {
		n++
	}
	return n
}

func numberLen(number uint64) int {
	sequence, inSequence := split(number)
	n := UvarintLen(inSequence)
	if sequence > 0 {
		n += UvarintLen(sequence)
	}
	return n
}

// UvarintLen is how many bytes v takes.
func UvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// appendRanges writes the gap before each range and its length, both less one; nothing if there are
// none.
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

// appendUnits writes runs: how far after the one before, how many units, and the units.
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
			fragment := !u.First || !u.Last
			dst = binary.AppendUvarint(dst, uint64(len(u.Payload))<<1|uint64(when(fragment, 1)))
			if fragment {
				dst = append(dst, when(u.First, 1)|when(u.Last, 2))
			}
			dst = append(dst, u.Payload...)
		}
		next = p.Units[i].Number + uint64(n)
		i += n
	}
	return dst
}
