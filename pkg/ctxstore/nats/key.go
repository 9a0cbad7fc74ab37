package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Keys are what a subject of NATS can hold, and what tools that list a bucket show:
//
//	hhfr.session.0011…   of urn:hhfr:session:0011…
//	uri.http=3A//a/b     of any other
//	long.4f53…           of one that is too long; the URI is in the message
//	part.4f53….3         a part of a long value
const (
	ownKeys   = "hhfr."
	otherKeys = "uri."
	longKeys  = "long."
	partKeys  = "part."

	ownURIs = "urn:hhfr:"
	// longestKey is well below what servers take for a line of their protocol (4 KB).
	longestKey = 2048
)

// keyOf returns the key of a URI; long: the URI cannot be read from it.
func keyOf(uri string) (key string, long bool) {
	if kind, rest, ok := ownKind(uri); ok && rest != "" {
		key = ownKeys + kind + "." + escape(rest)
	} else {
		key = otherKeys + escape(uri)
	}
	if len(key) <= longestKey {
		return key, false
	}
	sum := sha256.Sum256([]byte(uri))
	return longKeys + hex.EncodeToString(sum[:]), true
}

// ownKind takes a URI of hhfr's own apart.
func ownKind(uri string) (kind, rest string, ok bool) {
	tail, ok := strings.CutPrefix(uri, ownURIs)
	if !ok {
		return "", "", false
	}
	kind, rest, ok = strings.Cut(tail, ":")
	plain := kind != "" && !strings.ContainsFunc(kind, func(r rune) bool { return r < 'a' || r > 'z' })
	return kind, rest, ok && plain
}

// uriOf returns the URI of a key; false: it is not in the key, or none.
func uriOf(key string) (string, bool) {
	if tail, ok := strings.CutPrefix(key, ownKeys); ok {
		kind, rest, _ := strings.Cut(tail, ".")
		rest, ok = unescape(rest)
		return ownURIs + kind + ":" + rest, ok
	}
	if rest, ok := strings.CutPrefix(key, otherKeys); ok {
		return unescape(rest)
	}
	return "", false
}

// filters returns the keys under which all URIs with a prefix are, and perhaps others.
func filters(prefix string) []string {
	if kind, rest, ok := ownKind(prefix); ok {
		keys := []string{ownKeys + kind + ".>", longKeys + ">"}
		if rest == "" { // as a URI it has a key like others
			keys = append(keys, otherKeys+escape(prefix))
		}
		return keys
	}
	own := min(len(prefix), len(ownURIs))
	if prefix[:own] == ownURIs[:own] {
		return []string{ownKeys + ">", otherKeys + ">", longKeys + ">"}
	}
	return []string{otherKeys + ">", longKeys + ">"}
}

const plainBytes = "-_/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// escape writes each byte that a key cannot have as = and two digits.
func escape(s string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(plainBytes, c) >= 0 {
			out.WriteByte(c)
		} else {
			out.Write([]byte{'=', digits[c>>4], digits[c&15]})
		}
	}
	return out.String()
}

func unescape(s string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '=' {
			out.WriteByte(s[i])
			continue
		}
		if i+3 > len(s) {
			return "", false
		}
		b, err := hex.DecodeString(s[i+1 : i+3])
		if err != nil {
			return "", false
		}
		out.Write(b)
		i += 2
	}
	return out.String(), true
}
