// Package datagram takes the datagrams of pkg/streamer/udp apart, and writes them
// (docs/wire-format.md, section 12.1).
package datagram

import (
	"encoding/binary"
)

// Kind is the first byte of a datagram (docs/wire-format.md, section 12.1).
type Kind byte

const (
	// Ask: a nonce, and zeros; wants an answer.
	Ask Kind = iota + 1
	// Answer: the nonce, a session id that only this address with this nonce can open, and, where
	// an early datagram has opened the session, a packet.
	Answer
	// Open: session id, nonce, packet; opens the session, until something of it was heard.
	Open
	// Data: session id, packet.
	Data
	// Challenge: session id, and a token that only this address can know; wants a proof.
	Challenge
	// Proof: session id, and the token of a challenge: who dialled receives at the address it comes
	// from.
	Proof
	// Early: a nonce, and a packet; wants an answer, and opens the session if the listener has
	// capacity to spare.
	Early
)

// Window is how many units are above the floor at most in each direction: both ends are of the same
// version, and need not agree anew.
const Window = 1024

const (
	DataHeader  = 1 + 8
	EarlyHeader = DataHeader
	OpenHeader  = DataHeader + 8
	// askLen is longer than an answer, so that nobody is sent more than was sent in his name.
	askLen = 32
)

// Datagram is one, taken apart.
type Datagram struct {
	Kind    Kind
	Session uint64 // its id; not of ask and early
	Nonce   uint64 // of ask, answer, open and early; the token of challenge and proof
	// Packet is of open, data and early, and of some answers (docs/wire-format.md, section 12.2).
	// It aliases the datagram.
	Packet []byte
}

// Parse takes a datagram apart; false: it is none. What is in its packet is not looked at.
func Parse(b []byte) (d Datagram, ok bool) {
	if len(b) == 0 {
		return d, false
	}
	d.Kind = Kind(b[0])
	switch d.Kind {
	case Ask:
		if len(b) < askLen {
			return d, false
		}
		d.Nonce = binary.BigEndian.Uint64(b[1:])
	case Answer:
		if len(b) < OpenHeader {
			return d, false
		}
		d.Nonce, d.Session, d.Packet = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:]), b[OpenHeader:]
	case Open:
		if len(b) < OpenHeader {
			return d, false
		}
		d.Session, d.Nonce, d.Packet = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:]), b[OpenHeader:]
	case Data:
		if len(b) < DataHeader {
			return d, false
		}
		d.Session, d.Packet = binary.BigEndian.Uint64(b[1:]), b[DataHeader:]
	case Challenge, Proof:
		if len(b) != OpenHeader {
			return d, false
		}
		d.Session, d.Nonce = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	case Early:
		if len(b) < EarlyHeader {
			return d, false
		}
		d.Nonce, d.Packet = binary.BigEndian.Uint64(b[1:]), b[EarlyHeader:]
	default:
		return d, false
	}
	return d, true
}

func AppendAsk(dst []byte, nonce uint64) []byte {
	return append(Append(dst, Ask, nonce), make([]byte, askLen-9)...)
}

// appendNumbers writes a datagram of numbers alone, or what stands before a packet.
func Append(dst []byte, k Kind, numbers ...uint64) []byte {
	dst = append(dst, byte(k))
	for _, n := range numbers {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return dst
}
