package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// Flush says that the sender of a message waits, maybe for long, before it goes on (section 5.5): the receiver
// gives out what there is of the body. Settled octets of the texts behind the last item of its content are there.
type Flush struct {
	Message Key
	Settled uint64
}

// Kind is [KindFlush].
func (Flush) Kind() Kind { return KindFlush }

// AppendTo appends the frame.
func (f Flush) AppendTo(b []byte) []byte {
	return appendFramed(b, []byte{byte(KindFlush)}, func(b []byte) []byte {
		b = binary.AppendUvarint(b, f.Message.Lane)
		b = append(b, bit(f.Message.Reply, 1))
		b = binary.AppendUvarint(b, f.Message.Exchange)
		return binary.AppendUvarint(b, f.Settled)
	})
}

func parseFlush(c *bin.Cursor) Frame {
	var f Flush
	f.Message.Lane = c.Uvarint()
	f.Message.Reply = direction(c, 1) == 1
	f.Message.Exchange = c.Uvarint()
	at := c.At()
	if f.Settled = c.Uvarint(); c.Err() == nil && f.Settled == 0 {
		c.Fail(fault(BadValue, at, "no octets"))
	}
	return f
}
