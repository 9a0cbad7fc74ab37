package frame

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/hhfr/hhfr/internal/bin"
)

// UnorderedOverhead is the most octets that a data frame of an unordered direction has in its payload beside content (section 13.2).
const UnorderedOverhead = binary.MaxVarintLen64 + checkLen

const checkLen = 4

// Seals is what the sender of an unordered direction knows of messages that are begun and not whole. The zero value is that of a direction after its hello.
type Seals struct{ open map[Key]seal }

type seal struct {
	next uint64 // fragment
	crc  uint32
}

// Seal makes the frame of an unordered direction of f, whose numbers are set: it names them, and its payload, which is appended to scratch, says which fragment of its message it is, and ends with the check of a whole one.
func (s *Seals) Seal(f *Data, scratch []byte) []byte {
	k := f.Key()
	m := s.open[k]
	f.NamesLane, f.NamesExchange = f.Lane != 0, true
	b := scratch
	if !f.First {
		b = binary.AppendUvarint(b, m.next)
	}
	b = append(b, f.Payload...)
	m.next++
	m.crc = crc32.Update(m.crc, castagnoli, f.Payload)
	switch {
	case f.Last:
		b = binary.LittleEndian.AppendUint32(b, m.crc)
		delete(s.open, k)
	default:
		if s.open == nil {
			s.open = map[Key]seal{}
		}
		s.open[k] = m
	}
	f.Payload = b
	return b
}

// Cancel forgets a message that is given up.
func (s *Seals) Cancel(k Key) { delete(s.open, k) }

// Fragments puts the fragments of the messages of an unordered direction in order, message by message: the receiver's side of [Seals]. Those that come early wait. The zero value has no room for any.
type Fragments struct {
	// MaxEarly bounds the fragments that wait for others before them, MaxBytes the sum of their octets.
	MaxEarly int
	MaxBytes int
	open     map[Key]*fragments
	early    int
	bytes    int
	ready    []Data
}

// fragments are those of one message.
type fragments struct {
	next  uint64
	crc   uint32
	early map[uint64]Data
}

// Take takes in a data frame as parsed, whose first octet has the offset at, and returns the fragments whose turn it is now, in order: names resolved, and nothing but content in their payloads, which alias f, but for those
// that waited. It holds until the next call. What ends with its last fragment has a right check. Errors have the codes [BadNumber], [BadState], [BadSum] and, beyond the bounds, [TooLarge].
func (m *Fragments) Take(f Data, at int64) (ready []Data, err error) {
	m.ready = m.ready[:0]
	if !f.NamesExchange {
		return nil, fault(BadNumber, at, "a frame of an unordered direction names no exchange")
	}
	number := uint64(0)
	c := bin.NewCursor(f.Payload, at)
	if !f.First {
		if number = c.Uvarint(); c.Err() == nil && number == 0 {
			return nil, fault(BadValue, at, "fragment 0 is the first one")
		}
	}
	if f.Last && c.Len() < checkLen {
		return nil, fault(Truncated, at, "no room for a check")
	}
	if c.Err() != nil {
		return nil, own(c.Err())
	}
	f.Payload = c.Rest()
	k := f.Key()
	msg := m.open[k]
	switch {
	case msg == nil && f.First && f.Last: // the way of nearly all
		msg = &fragments{}
	case msg == nil:
		if m.open == nil {
			m.open = map[Key]*fragments{}
		}
		msg = &fragments{}
		m.open[k] = msg
	}
	if _, waits := msg.early[number]; number < msg.next || waits {
		return nil, fault(BadState, at, "second fragment %d of %s", number, k)
	}
	if number > msg.next {
		return nil, m.keep(msg, number, f, at)
	}
	for waits := true; waits; {
		if err := m.turn(msg, f, at); err != nil {
			return nil, err
		}
		if f, waits = msg.early[msg.next]; waits {
			delete(msg.early, msg.next)
			m.early--
			m.bytes -= len(f.Payload)
		}
	}
	return m.ready, nil
}

// keep has a fragment wait.
func (m *Fragments) keep(msg *fragments, number uint64, f Data, at int64) error {
	if m.early >= m.MaxEarly || len(f.Payload) > m.MaxBytes-m.bytes {
		return fault(TooLarge, at, "%d fragments of %d octets wait for others before them", m.early, m.bytes)
	}
	if msg.early == nil {
		msg.early = map[uint64]Data{}
	}
	f.Payload = append([]byte(nil), f.Payload...)
	msg.early[number] = f
	m.early++
	m.bytes += len(f.Payload)
	return nil
}

// turn is that of a fragment.
func (m *Fragments) turn(msg *fragments, f Data, at int64) error {
	said := uint32(0)
	if f.Last {
		end := len(f.Payload) - checkLen
		said = binary.LittleEndian.Uint32(f.Payload[end:])
		f.Payload = f.Payload[:end:end]
	}
	msg.next++
	msg.crc = crc32.Update(msg.crc, castagnoli, f.Payload)
	if f.Last {
		k := f.Key()
		delete(m.open, k)
		if said != msg.crc {
			return fault(BadSum, at, "%s says %08x, is %08x", k, said, msg.crc)
		}
		if len(msg.early) > 0 {
			return fault(BadState, at, "fragment behind the last of %s", k)
		}
	}
	m.ready = append(m.ready, f)
	return nil
}

// Len is the number of messages that are not whole.
func (m *Fragments) Len() int { return len(m.open) }

// Cancel takes a message out that its sender gave up; false if nothing of it came.
func (m *Fragments) Cancel(k Key) bool {
	msg, ok := m.open[k]
	if !ok {
		return false
	}
	for _, f := range msg.early {
		m.early--
		m.bytes -= len(f.Payload)
	}
	delete(m.open, k)
	return true
}
