package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// Window grants credit for a message of the other direction (section 5.3): so many octets of content more.
type Window struct {
	Message Key
	Octets  uint64
}

// Kind is [KindWindow].
func (Window) Kind() Kind { return KindWindow }

// AppendTo appends the frame.
func (f Window) AppendTo(b []byte) []byte {
	return appendFramed(b, []byte{byte(KindWindow)}, func(b []byte) []byte {
		b = binary.AppendUvarint(b, f.Message.Lane)
		b = append(b, bit(f.Message.Reply, 1))
		b = binary.AppendUvarint(b, f.Message.Exchange)
		return binary.AppendUvarint(b, f.Octets)
	})
}

func parseWindow(c *bin.Cursor) Frame {
	var f Window
	f.Message.Lane = c.Uvarint()
	f.Message.Reply = direction(c, 1) == 1
	f.Message.Exchange = c.Uvarint()
	at := c.At()
	if f.Octets = c.Uvarint(); c.Err() == nil && f.Octets == 0 {
		c.Fail(fault(BadValue, at, "no octets"))
	}
	return f
}
