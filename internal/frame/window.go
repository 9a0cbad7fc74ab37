package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// Window grants credit for a message of the other direction (section 5.3): so many octets of
// content more.
type Window struct {
	Message Key
	Octets  uint64
}

// Kind is [KindWindow].
func (Window) Kind() Kind { return KindWindow }

// AppendTo appends the frame.
func (f Window) AppendTo(b []byte) []byte { return appendOctetsOf(b, KindWindow, f.Message, f.Octets) }

func parseWindow(c *bin.Cursor) Frame {
	message, octets := octetsOf(c)
	return Window{message, octets}
}

// Flush says that the sender of a message waits, maybe for long, before it goes on (section 5.5):
// the receiver gives out what there is of the body. Settled octets of the texts behind the last
// item of its content are there.
type Flush struct {
	Message Key
	Settled uint64
}

// Kind is [KindFlush].
func (Flush) Kind() Kind { return KindFlush }

// AppendTo appends the frame.
func (f Flush) AppendTo(b []byte) []byte { return appendOctetsOf(b, KindFlush, f.Message, f.Settled) }

func parseFlush(c *bin.Cursor) Frame {
	message, octets := octetsOf(c)
	return Flush{message, octets}
}

// appendOctetsOf appends a frame that names a message and a number of octets above 0.
func appendOctetsOf(b []byte, k Kind, message Key, octets uint64) []byte {
	return appendFramed(b, []byte{byte(k)}, func(b []byte) []byte {
		b = binary.AppendUvarint(b, message.Lane)
		b = append(b, bit(message.Reply, 1))
		b = binary.AppendUvarint(b, message.Exchange)
		return binary.AppendUvarint(b, octets)
	})
}

func octetsOf(c *bin.Cursor) (message Key, octets uint64) {
	c.Name("lane", bin.Uint)
	message.Lane = c.Uvarint()
	message.Reply = direction(c, 1) == 1
	message.Exchange = exchange(c)
	at := c.At()
	c.Name("octets", bin.Uint)
	if octets = c.Uvarint(); c.Err() == nil && octets == 0 {
		c.Fail(fault(BadValue, at, "no octets"))
	}
	return message, octets
}
