package shape

import (
	"encoding/binary"
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
)

// segmentReader reads items (wire-format sections 10.1 and 10.2) and remembers its first failure.
type segmentReader struct {
	seg  []byte
	at   int
	bit  byte  // the octet bits are taken from, those taken shifted out
	left uint8 // bits left in it
	idle uint8 // bits of the last bit octet that are not used; 0 where the segment does not tell
	err  error
}

// newSegmentReader reads a segment; all but the last of a part tell in their last octet how many bits of the last bit octet are used.
func newSegmentReader(seg []byte, last bool) segmentReader {
	r := segmentReader{seg: seg}
	if n := len(seg) - 1; !last && n >= 0 {
		r.seg = seg[:n]
		if r.idle = 8 - seg[n]; seg[n] > 8 {
			r.fail("more than 8 bits in an octet")
		}
	}
	return r
}

// has tells whether the segment has an item left that begins with a bit, or an octet.
func (r *segmentReader) has(bit bool) bool {
	return r.at < len(r.seg) || bit && r.left > r.idle
}

// end checks that nothing is left over.
func (r *segmentReader) end() error {
	if r.err == nil && (r.at < len(r.seg) || r.left > 0 && r.bit != 0) {
		r.err = &Error{Code: Malformed, At: int64(r.at), What: "content is left over"}
	}
	return r.err
}

func (r *segmentReader) fail(what string) {
	if r.err == nil {
		r.err = &Error{Code: Malformed, At: int64(r.at), What: what}
	}
}

func (r *segmentReader) octet() byte {
	if r.at == len(r.seg) {
		r.fail("content ends inside an item")
		return 0
	}
	r.at++
	return r.seg[r.at-1]
}

func (r *segmentReader) bits(n uint8) (v uint32) {
	if n <= r.left {
		v = uint32(r.bit) & (1<<n - 1)
		r.bit >>= n
		r.left -= n
		return v
	}
	for i := uint8(0); i < n; i++ {
		if r.left == 0 {
			r.bit, r.left = r.octet(), 8
		}
		v |= uint32(r.bit&1) << i
		r.bit >>= 1
		r.left--
	}
	return v
}

// uvarintAt reads an unsigned integer; n is 0 where there is none in its shortest form. at is not negative.
func uvarintAt(b []byte, at int) (u uint64, n int) {
	if len(b)-at >= 8 {
		w := binary.LittleEndian.Uint64(b[at:])
		if ends := ^w & (0x80 * ones); ends != 0 {
			end := uint(bits.TrailingZeros64(ends))
			w &= 0x7f * ones & (2<<end - 1)
			w = w&0x007f007f007f007f | w&0x7f007f007f007f00>>1
			w = w&0x00003fff00003fff | w&0x3fff00003fff0000>>2
			w = w&0x0fffffff | w>>32<<28
			if end > 7 && b[at+int(end>>3)] == 0 {
				return 0, 0
			}
			return w, int(end>>3) + 1
		}
	}
	if at >= len(b) {
		return 0, 0
	}
	u, n = binary.Uvarint(b[at:])
	if n <= 0 || n > 1 && b[at+n-1] == 0 {
		return 0, 0
	}
	return u, n
}

func (r *segmentReader) uvarint() uint64 {
	if r.at < len(r.seg) && r.seg[r.at] < 0x80 {
		r.at++
		return uint64(r.seg[r.at-1])
	}
	if u, n := uvarintAt(r.seg, r.at); n > 0 {
		r.at += n
		return u
	}
	c := bin.NewCursor(r.seg, 0)
	c.Take(r.at)
	v := c.Uvarint()
	if err := c.Err(); err != nil && r.err == nil {
		r.err = &Error{Code: Malformed, At: int64(r.at), What: "integer", Err: err}
	}
	r.at = len(r.seg) - c.Len()
	if c.Err() != nil {
		r.at = len(r.seg)
	}
	return v
}

func (r *segmentReader) take(n uint64) []byte {
	if n > uint64(len(r.seg)-r.at) {
		r.fail("text longer than its segment")
		return nil
	}
	b := r.seg[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}
