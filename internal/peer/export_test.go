package peer

// Pack writes ranges down as those that are built in, Unpack reads them.
func (r *Ranges) Pack() []byte { return r.pack() }

// Unpack is the reverse of Pack.
func Unpack(b []byte) (*Ranges, error) { return unpackRanges(b) }

// BuiltIn are the bytes that are built in.
func BuiltIn() []byte { return dutch }

// Has reports whether an address, given as text, is in a range.
func (r *Ranges) Has(address string) bool {
	a, ok := parseAddress(address)
	return ok && r.has(a)
}
