package peer

import "encoding/binary"

// Pack writes ranges down as those that are built in, Unpack reads them: for each a varint with the
// addresses between it and the one before, and one with its addresses but the first.
func (r *Ranges) Pack() []byte {
	var b []byte
	var end uint32
	for i := 0; i < len(r.bounds); i += 2 {
		b = binary.AppendUvarint(b, uint64(r.bounds[i]-end))
		b = binary.AppendUvarint(b, uint64(r.bounds[i+1]-r.bounds[i]))
		end = r.bounds[i+1]
	}
	return b
}

// Unpack is the reverse of Pack.
func Unpack(b []byte) (*Ranges, error) { return unpackRanges(b) }

// BuiltIn are the bytes that are built in.
func BuiltIn() []byte { return dutch }

// Has reports whether an address, given as text, is in a range.
func (r *Ranges) Has(address string) bool {
	a, ok := parseAddress(address)
	return ok && r.Contains(a)
}
