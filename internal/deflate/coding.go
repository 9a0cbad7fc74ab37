package deflate

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
)

// Coding is how zlib coded a body.
type Coding struct {
	Params
	// Header stands before what is deflated: that of gzip (RFC 1952), without optional fields, that
	// of zlib (RFC 1950), or none.
	Header string
}

const gzipHeader, zlibHeader = 10, 2 // their lengths

// Append appends what plain is coded as; false: as [Append] says.
func (c Coding) Append(dst, plain []byte) ([]byte, bool) {
	dst, ok := Append(append(dst, c.Header...), plain, c.Params)
	return append(dst, c.trailer(plain)...), ok
}

func (c Coding) trailer(plain []byte) []byte {
	switch len(c.Header) {
	case gzipHeader:
		sum := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(plain))
		return binary.LittleEndian.AppendUint32(sum, uint32(len(plain)))
	case zlibHeader:
		return binary.BigEndian.AppendUint32(nil, adler32.Checksum(plain))
	}
	return nil
}

// String is the coding as [Parse] reads it: the parameters, each in a hexadecimal digit, then what
// may differ in the header, g before that of gzip and z before that of zlib.
func (c Coding) String() string {
	text := fmt.Sprintf("%x%x%x", c.Level, c.Window, c.Memory)
	switch octets := []byte(c.Header); len(octets) {
	case gzipHeader:
		text += fmt.Sprintf("g%x", binary.BigEndian.Uint64(octets[2:])&(1<<48-1))
	case zlibHeader:
		text += fmt.Sprintf("z%x", octets)
	}
	return text
}

// Parse parses a coding; false: it is none.
func Parse(text string) (c Coding, ok bool) {
	var kind rune
	var header uint64
	_, _ = fmt.Sscanf(text, "%1x%1x%1x%c%x", &c.Level, &c.Window, &c.Memory, &kind, &header) // some have no header
	switch kind {
	case 'g':
		c.Header = string(binary.BigEndian.AppendUint64([]byte{0x1f, 0x8b}, 8<<56|header))
	case 'z':
		c.Header = string(binary.BigEndian.AppendUint16(nil, uint16(header)))
	}
	return c, c.areValid() && c.String() == text
}

// headerOf returns the header of a coded body; false: it is one of those that are not kept.
func headerOf(coded []byte) (string, bool) {
	switch {
	case len(coded) < gzipHeader:
		return "", false
	case coded[0] == 0x1f && coded[1] == 0x8b:
		return string(coded[:gzipHeader]), coded[2] == 8 && coded[3] == 0
	case coded[0]&0x0f == 8 && binary.BigEndian.Uint16(coded)%31 == 0:
		return string(coded[:zlibHeader]), coded[1]&0x20 == 0 // no dictionary
	}
	return "", true
}
