package frame

import "bytes"

// BeginsStream tells whether b begins with the mark of a hello: whether it may be the first octets of a direction (section 3).
func BeginsStream(b []byte) bool { return bytes.HasPrefix(b, helloMark) }

// HasSync tells whether the mark of a sync stands anywhere in b (section 6).
func HasSync(b []byte) bool { return bytes.Contains(b, syncMark) }
