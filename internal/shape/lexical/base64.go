package lexical

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
)

// StrictBase64 is base64 as values have it: with padding, whose bits are zero.
var StrictBase64 = base64.StdEncoding.Strict()

// twoByTwo are two characters of base64 and the 12 bits that they stand for, each by the other:
// long values take half the time by them that they take by single characters.
type twoByTwo struct {
	chars [1 << 12]uint16
	bits  [1 << 16]uint16 // notBits: these are not two characters of base64
}

const notBits = 1 << 15

var base64Pairs = sync.OnceValue(func() *twoByTwo {
	p := new(twoByTwo)
	for i := range p.bits {
		p.bits[i] = notBits
	}
	var two [4]byte
	for i := range p.chars {
		base64.StdEncoding.Encode(two[:], []byte{byte(i >> 4), byte(i << 4), 0})
		p.chars[i] = binary.LittleEndian.Uint16(two[:])
		p.bits[p.chars[i]] = uint16(i)
	}
	return p
})

// AppendBase64 appends the base64 of bytes.
func AppendBase64(dst, b []byte) []byte {
	p, at := base64Pairs(), len(dst)
	dst = slices.Grow(dst, base64.StdEncoding.EncodedLen(len(b)))
	for out := dst[:cap(dst)]; len(b) >= 8; at += 8 { // six of which go
		v := binary.BigEndian.Uint64(b)
		binary.LittleEndian.PutUint64(out[at:], uint64(p.chars[v>>52])|uint64(p.chars[v>>40&0xfff])<<16|
			uint64(p.chars[v>>28&0xfff])<<32|uint64(p.chars[v>>16&0xfff])<<48)
		b = b[6:]
	}
	return base64.StdEncoding.AppendEncode(dst[:at], b)
}

// AppendFromBase64 appends the bytes that characters of base64 stand for. With an error, what
// stands before the fault is appended.
func AppendFromBase64(dst, chars []byte) ([]byte, error) {
	p, at := base64Pairs(), len(dst)
	dst = slices.Grow(dst, len(chars)/4*3+2) // eight bytes are written, of which six count
	for out := dst[:cap(dst)]; len(chars) >= 8; at += 6 {
		v := binary.LittleEndian.Uint64(chars)
		a, b, c, d := p.bits[v&0xffff], p.bits[v>>16&0xffff], p.bits[v>>32&0xffff], p.bits[v>>48]
		if (a|b|c|d)&notBits != 0 {
			break
		}
		binary.BigEndian.PutUint64(out[at:], uint64(a)<<52|uint64(b)<<40|uint64(c)<<28|uint64(d)<<16)
		chars = chars[8:]
	}
	return StrictBase64.AppendDecode(dst[:at], chars)
}
