package frame

import "github.com/hhfr/hhfr/internal/bin"

// Ack says what is done of a sequence (section 5.1). Octets are those of a packet of section 12.2
// without units; they are not looked at here.
type Ack struct{ Octets []byte }

// Kind is [KindAck].
func (Ack) Kind() Kind { return KindAck }

// AppendTo appends the frame.
func (f Ack) AppendTo(b []byte) []byte {
	return bin.AppendBytes(append(b, byte(KindAck)|skipBit), f.Octets)
}

func parseAck(c *bin.Cursor) Frame {
	c.Name("what is done", bin.Raw)
	return Ack{Octets: c.Rest()}
}
