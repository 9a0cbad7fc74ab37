package frame

import "bytes"

// BeginsStream tells whether b begins with the mark of a hello: whether it may be the first octets of a direction (section 3).
func BeginsStream(b []byte) bool { return bytes.HasPrefix(b, helloMark) }

// Opening is the hello that b begins with, if that is whole and its own check holds.
func Opening(b []byte) (h Hello, ok bool) {
	if !BeginsStream(b) {
		return h, false
	}
	f, n, err := Parse(b, 0, 0)
	if err != nil || n == 0 {
		return h, false
	}
	return f.(Hello), true
}

// HasSync tells whether the mark of a sync stands anywhere in b (section 6).
func HasSync(b []byte) bool { return bytes.Contains(b, syncMark) }
