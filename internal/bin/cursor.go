// Package bin reads and writes the primitive values of the wire format: integers, byte strings,
// bit-packed columns (docs/wire-format.md, sections 1 and 10.5). One value must not be used
// concurrently.
package bin

import (
	"encoding/binary"
	"fmt"
)

// Code is the kind of an [Error].
type Code uint8

const (
	// Truncated: the input ends inside a field.
	Truncated Code = iota + 1
	// Overlong: an integer is not in its shortest form, or does not fit 64 bits.
	Overlong
	// TooLarge: a length or count is above the limit the caller gave.
	TooLarge
)

var codeNames = map[Code]string{Truncated: "input ends inside a field", Overlong: "integer is not in its shortest form",
	TooLarge: "length above the limit"}

func (c Code) String() string { return codeNames[c] }

// Error is the first failure of a [Cursor]. At is the offset of the field that failed, in bytes,
// counted from the base of the cursor.
type Error struct {
	Code       Code
	At         int64
	Need, Have uint64
}

func (e *Error) Error() string {
	return fmt.Sprintf("offset %d: %s (need %d, have %d)", e.At, e.Code, e.Need, e.Have)
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Cursor reads fields from the front of a buffer and remembers its first failure; after that every
// read returns zero. It never allocates and never copies: what it returns aliases the buffer.
type Cursor struct {
	buf  []byte
	at   int
	base int64
	err  error
	// names has the fields that were named; nil: nobody watches.
	names *[]NamedField
}

// NewCursor reads from b, whose first byte has the offset base (for error messages).
func NewCursor(b []byte, base int64) Cursor { return Cursor{buf: b, base: base} }

// Err is the first failure, nil if there was none.
func (c *Cursor) Err() error { return c.err }

// At is the offset of the next byte, base included.
func (c *Cursor) At() int64 { return c.base + int64(c.at) }

// Len is the number of bytes left; 0 after a failure.
func (c *Cursor) Len() int {
	if c.err != nil {
		return 0
	}
	return len(c.buf) - c.at
}

// Fail records err as the failure, if there is none yet.
func (c *Cursor) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *Cursor) fail(code Code, need, have uint64) {
	c.Fail(&Error{Code: code, At: c.At(), Need: need, Have: have})
}

// Take returns the next n bytes.
func (c *Cursor) Take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if have := len(c.buf) - c.at; n < 0 || n > have {
		c.fail(Truncated, uint64(n), uint64(have))
		return nil
	}
	b := c.buf[c.at : c.at+n : c.at+n]
	c.at += n
	return b
}

// Rest returns all bytes that are left.
func (c *Cursor) Rest() []byte { return c.Take(c.Len()) }

// U8 reads one byte.
func (c *Cursor) U8() byte {
	if c.err == nil && c.at < len(c.buf) {
		c.at++
		return c.buf[c.at-1]
	}
	c.Take(1)
	return 0
}

// U32 reads four bytes, little-endian.
func (c *Cursor) U32() uint32 {
	if b := c.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uvarint reads an unsigned LEB128 integer and rejects any but its shortest form.
func (c *Cursor) Uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	if c.at < len(c.buf) && c.buf[c.at] < 0x80 {
		c.at++
		return uint64(c.buf[c.at-1])
	}
	v, n := binary.Uvarint(c.buf[c.at:])
	switch {
	case n == 0:
		c.fail(Truncated, uint64(len(c.buf)-c.at)+1, uint64(len(c.buf)-c.at))
		return 0
	case n < 0 || c.buf[c.at+n-1] == 0:
		c.fail(Overlong, 0, 0)
		return 0
	}
	c.at += n
	return v
}

// Count reads a uvarint and rejects one above most.
func (c *Cursor) Count(most uint64) int {
	start := c.at
	v := c.Uvarint()
	if c.err == nil && v > most {
		c.at = start
		c.fail(TooLarge, v, most)
		return 0
	}
	return int(v)
}

// Bytes reads a length and that many bytes; a length above most, or beyond the input, is a failure
// before anything is read.
func (c *Cursor) Bytes(most uint64) []byte {
	n := c.Count(most)
	return c.Take(n)
}

// AppendBytes appends a length and b.
func AppendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// Zigzag maps signed to unsigned integers, small magnitudes to small values.
func Zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// Unzigzag is the inverse of [Zigzag].
func Unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
