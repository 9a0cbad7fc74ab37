package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// CancelCode is why a message is cancelled (section 7).
type CancelCode uint8

// The codes of section 7.
const (
	Aborted         CancelCode = 1
	Busy            CancelCode = 2
	Unprocessed     CancelCode = 3
	MessageTooLarge CancelCode = 4
	Malformed       CancelCode = 5
	Unserved        CancelCode = 6
	Failed          CancelCode = 7
)

var cancelNames = map[CancelCode]string{Aborted: "aborted", Busy: "busy", Unprocessed: "unprocessed",
	MessageTooLarge: "too large",
	Malformed:       "malformed", Unserved: "unserved", Failed: "failed"}

// String is the name of section 7, or "unknown".
func (c CancelCode) String() string {
	if n, ok := cancelNames[c]; ok {
		return n
	}
	return "unknown"
}

// maxCancelText is the longest text of a cancel, in octets.
const maxCancelText = 256

// Cancel ends one message (section 7): one that travels in the frame's own direction and is given
// up, or, if Refused, one of the other direction that is not taken. Lane, Reply and Exchange name
// the message.
type Cancel struct {
	Message Key
	Refused bool
	Code    CancelCode
	Text    string
}

// Kind is [KindCancel].
func (Cancel) Kind() Kind { return KindCancel }

// AppendTo appends the frame; a text above [maxCancelText] is cut.
func (f Cancel) AppendTo(b []byte) []byte {
	return appendFramed(b, []byte{byte(KindCancel)}, func(b []byte) []byte {
		b = binary.AppendUvarint(b, f.Message.Lane)
		b = append(b, bit(f.Message.Reply, 1)|bit(f.Refused, 2))
		b = binary.AppendUvarint(b, f.Message.Exchange)
		return bin.AppendBytes(append(b, byte(f.Code)), []byte(cut(f.Text, maxCancelText)))
	})
}

func parseCancel(c *bin.Cursor) Frame {
	var f Cancel
	c.Name("lane", bin.Uint)
	f.Message.Lane = c.Uvarint()
	r := direction(c, 3)
	f.Message.Reply, f.Refused = r&1 != 0, r&2 != 0
	f.Message.Exchange = exchange(c)
	at := c.At()
	c.Name("code", bin.Byte)
	f.Code = CancelCode(c.U8())
	if c.Err() == nil && f.Code == 0 {
		c.Fail(fault(BadValue, at, "cancel code 0"))
	}
	f.Text = text(c, maxCancelText)
	return f
}
