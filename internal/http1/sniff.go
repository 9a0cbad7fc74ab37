package http1

import (
	"bytes"
	"strings"
)

// IsStatusLine reports whether line, without its line end, is an HTTP/1.x status line (RFC 9112,
// section 4). The reason phrase and the space before it may be missing.
func IsStatusLine(line []byte) bool {
	version, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || !isVersion(version) {
		return false
	}
	rest = bytes.TrimLeft(rest, " ")
	return len(rest) >= 3 && digits(rest[:3]) && rest[0] != '0' && (len(rest) == 3 || rest[3] == ' ')
}

// IsRequestLine reports whether line, without its line end, is an HTTP/1.x request line (RFC 9112,
// section 3): a token, a target, a version.
func IsRequestLine(line []byte) bool {
	first := bytes.IndexAny(line, " \t")
	line = bytes.TrimRight(line, " \t")
	last := bytes.LastIndexAny(line, " \t")
	return first > 0 && last > first && IsToken(line[:first]) && isVersion(line[last+1:]) &&
		len(trim(line[first:last])) > 0
}

func isVersion(b []byte) bool {
	return len(b) == 8 && string(b[:7]) == "HTTP/1." && b[7] >= '0' && b[7] <= '9'
}

// LooksLikeStart reports whether b begins with an HTTP/1.x start line, or with a valid beginning of
// one: whole status lines and request lines, and the beginning of a line of at most 8 KiB that is
// valid so far.
func LooksLikeStart(b []byte) bool {
	b = bytes.TrimLeft(b[:min(len(b), 8<<10)], "\r\n")
	if line, n := cutLine(b); n > 0 {
		return IsStatusLine(line) || IsRequestLine(line)
	}
	if len(b) >= 9 && isVersion(b[:8]) {
		return b[8] == ' '
	}
	method, rest, ok := bytes.Cut(b, []byte{' '})
	return ok && len(method) <= 24 && IsToken(method) && len(rest) > 0 &&
		(rest[0] == '/' || rest[0] == '*' || bytes.Contains(rest, []byte{':'}))
}

// MayBeRequest reports whether b begins with a request line of any version of HTTP, or is, up to 8
// KiB, the beginning of what may become one; for no bytes it is true.
func MayBeRequest(b []byte) bool {
	b = bytes.TrimLeft(b[:min(len(b), 8<<10)], "\r\n")
	line, n := cutLine(b)
	if n == 0 {
		line = b
	}
	method := line
	if at := bytes.IndexAny(line, " \t"); at >= 0 {
		method = line[:at]
	}
	if len(method) > 24 || len(line) > 0 && !IsToken(method) {
		return false
	}
	return n == 0 || bytes.Contains(line[len(method):], []byte("HTTP/"))
}

// IsToken reports whether b is a token (RFC 9110, section 5.6.2).
func IsToken(b []byte) bool {
	for _, c := range b {
		if !isTokenOctet(c) {
			return false
		}
	}
	return len(b) > 0
}

func isTokenOctet(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
