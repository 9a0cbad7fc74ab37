package frame

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/bin"
)

// CloseCode is why a direction ends (section 8).
type CloseCode uint8

// The codes of section 8.
const (
	CloseDone           CloseCode = 0
	CloseProtocol       CloseCode = 1
	CloseUnknownSession CloseCode = 2
	CloseLimits         CloseCode = 3
	CloseUnsupported    CloseCode = 4
	CloseCheck          CloseCode = 5
	CloseGoingAway      CloseCode = 6
	CloseInternal       CloseCode = 7
)

var closeNames = map[CloseCode]string{CloseDone: "done", CloseProtocol: "protocol",
	CloseUnknownSession: "unknown session", CloseLimits: "limits",
	CloseUnsupported: "unsupported", CloseCheck: "check", CloseGoingAway: "going away", CloseInternal: "internal"}

// String is the name of section 8, or "unknown".
func (c CloseCode) String() string {
	if n, ok := closeNames[c]; ok {
		return n
	}
	return "unknown"
}

// maxCloseText is the longest text of a close, in octets.
const maxCloseText = 1024

// Close ends a direction (section 8). Messages and Check are those since the last sync, as [Checks]
// counts them.
type Close struct {
	Code     CloseCode
	Text     string
	Messages uint64
	Check    uint32
}

// Kind is [KindClose].
func (Close) Kind() Kind { return KindClose }

// AppendTo appends the frame; a text above [maxCloseText] is cut.
func (f Close) AppendTo(b []byte) []byte {
	return appendFramed(b, []byte{byte(KindClose)}, func(b []byte) []byte {
		b = bin.AppendBytes(append(b, byte(f.Code)), []byte(cut(f.Text, maxCloseText)))
		b = binary.AppendUvarint(b, f.Messages)
		return binary.LittleEndian.AppendUint32(b, f.Check)
	})
}

func parseClose(c *bin.Cursor) Frame {
	var f Close
	c.Name("code", bin.Byte)
	f.Code, f.Text = CloseCode(c.U8()), text(c, maxCloseText)
	c.Name("messages", bin.Uint)
	f.Messages = c.Uvarint()
	c.Name("check", bin.Raw)
	f.Check = c.U32()
	return f
}

// text reads bytes that are UTF-8.
func text(c *bin.Cursor, most uint64) string {
	at := c.At()
	c.Name("text", bin.CountedText)
	b := c.Bytes(most)
	if !utf8.Valid(b) {
		c.Fail(fault(BadValue, at, "text is not UTF-8"))
	}
	return string(b)
}

// cut shortens s to at most most octets, and makes UTF-8 of it.
func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
