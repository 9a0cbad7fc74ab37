package shape

import (
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
