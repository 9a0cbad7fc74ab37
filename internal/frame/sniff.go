package frame

import "bytes"

// BeginsStream reports whether b begins with the mark of a hello: whether it may be the first bytes
// of a direction (section 3).
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

// HasSync reports whether the mark of a sync stands anywhere in b (section 6).
func HasSync(b []byte) bool { return bytes.Contains(b, syncMark) }

// MayOpen reports whether b, or what it is the beginning of, may begin with a hello.
func MayOpen(b []byte) bool {
	n := min(len(b), len(helloMark))
	return bytes.Equal(b[:n], helloMark[:n])
}

// Incomplete reports whether b holds only the beginning of a frame that may still become a good
// one.
func Incomplete(b []byte) bool {
	_, n, err := Parse(b, 0, 0)
	return n == 0 && err == nil
}

// SyncFree is how many octets of b, in which [FindSync] finds none from an index on, can be passed
// over: no sync begins in them, whatever comes behind b.
func SyncFree(b []byte, from int) int {
	for at := from; ; at++ {
		i := bytes.Index(b[at:], syncMark)
		if i < 0 {
			break
		}
		if at += i; Incomplete(b[at:]) {
			return at
		}
	}
	for n := min(len(syncMark)-1, len(b)-from); n > 0; n-- {
		if bytes.HasSuffix(b, syncMark[:n]) {
			return len(b) - n
		}
	}
	return len(b)
}

// FindSync looks for the first sync frame in b whose first octet is at index from or later, whose
// length fits and whose own check holds. It returns its index. The frame's word and offset are not
// judged: a scanner trusts a word once two candidates agree (section 6). A negative from counts as
// 0. A candidate that is cut off by the end of b is not found.
func FindSync(b []byte, from int) (at int, s Sync, ok bool) {
	for at = max(from, 0); at < len(b); at++ {
		i := bytes.Index(b[at:], syncMark)
		if i < 0 {
			break
		}
		at += i
		f, n, err := Parse(b[at:], int64(at), 0)
		if err == nil && n > 0 {
			return at, f.(Sync), true
		}
	}
	return 0, Sync{}, false
}

// MarkLen is the length of the marks of hello and sync, in octets.
const MarkLen = 8

// FindHello looks for hello's mark in b and returns its index; -1: it is not there.
func FindHello(b []byte) int { return bytes.Index(b, helloMark) }
