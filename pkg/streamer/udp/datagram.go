package udp

import "encoding/binary"

// kind is the first octet of a datagram.
type kind byte

const (
	// kindAsk: a nonce, and zeros; wants an answer.
	kindAsk kind = iota + 1
	// kindAnswer: the nonce, and a session id that only this address with this nonce can open.
	kindAnswer
	// kindOpen: session id, nonce, packet; opens the session, until something of it was heard.
	kindOpen
	// kindData: session id, packet.
	kindData
)

const (
	dataHeader = 1 + 8
	openHeader = dataHeader + 8
	// askLen is longer than an answer, so that nobody is sent more than was sent in his name.
	askLen = 32
)

// datagram is one, taken apart; packet aliases it.
type datagram struct {
	kind      kind
	id, nonce uint64
	packet    []byte
}

// parse takes a datagram apart; false: it is none.
func parse(b []byte) (d datagram, ok bool) {
	if len(b) == 0 {
		return d, false
	}
	d.kind = kind(b[0])
	switch d.kind {
	case kindAsk:
		if len(b) < askLen {
			return d, false
		}
		d.nonce = binary.BigEndian.Uint64(b[1:])
	case kindAnswer:
		if len(b) != openHeader {
			return d, false
		}
		d.nonce, d.id = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	case kindOpen:
		if len(b) < openHeader {
			return d, false
		}
		d.id, d.nonce, d.packet = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:]), b[openHeader:]
	case kindData:
		if len(b) < dataHeader {
			return d, false
		}
		d.id, d.packet = binary.BigEndian.Uint64(b[1:]), b[dataHeader:]
	default:
		return d, false
	}
	return d, true
}

func appendAsk(dst []byte, nonce uint64) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, byte(kindAsk)), nonce)
	return append(dst, make([]byte, askLen-9)...)
}

func appendAnswer(dst []byte, nonce, id uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(dst, byte(kindAnswer)), nonce), id)
}

// appendOpen and appendData write what stands before a packet.
func appendOpen(dst []byte, id, nonce uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(dst, byte(kindOpen)), id), nonce)
}

func appendData(dst []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, byte(kindData)), id)
}
