package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// Kept says which long messages of a sequence its receiver has in part (section 5.1). One that says
// nothing of them at the beginning of a stream takes none.
type Kept struct{ Messages []KeptPart }

// KeptPart is how many octets of the body of a long message are kept, from its beginning on.
type KeptPart struct{ Number, Octets uint64 }

// MaxKept is the most messages of one [Kept].
const MaxKept = 1024

// Kind is [KindKept].
func (Kept) Kind() Kind { return KindKept }

// AppendTo appends the frame.
func (f Kept) AppendTo(b []byte) []byte {
	body := make([]byte, 0, len(f.Messages)*2*binary.MaxVarintLen64)
	for _, m := range f.Messages {
		body = binary.AppendUvarint(binary.AppendUvarint(body, m.Number), m.Octets)
	}
	return bin.AppendBytes(append(b, byte(KindKept)|skipBit), body)
}

func parseKept(c *bin.Cursor) Frame {
	var f Kept
	seen := map[uint64]bool{}
	for c.Err() == nil && c.Len() > 0 {
		at := c.At()
		c.Name("number", bin.Uint)
		m := KeptPart{Number: c.Uvarint()}
		c.Name("octets", bin.Uint)
		m.Octets = c.Uvarint()
		if c.Err() == nil && (m.Number == 0 || m.Number > maxPlace || len(f.Messages) == MaxKept) {
			c.Fail(fault(BadValue, at, "number %d, or more than %d messages", m.Number, MaxKept))
		}
		if c.Err() == nil && (m.Octets == 0 || seen[m.Number]) {
			c.Fail(fault(BadValue, at, "number %d twice, or without octets", m.Number))
		}
		seen[m.Number] = true
		f.Messages = append(f.Messages, m)
	}
	return f
}
