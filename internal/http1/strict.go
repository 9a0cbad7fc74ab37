package http1

import (
	"bytes"
	"strings"
)

// The functions below are for programs that send a message on in their own name, and must not pass
// on what two readers could read differently. [ParseHead] is for those that pass bytes on
// unchanged.

// CheckFields rejects field lines that RFC 9112 forbids: a name that is no token, or is followed by
// blanks (section 5.1), control characters in a value, including a carriage return that ends no
// line (section 2.2; RFC 9110, section 5.5). Folds are allowed; [FieldLine.Unfolded] removes them.
// Errors: Malformed.
func CheckFields(h *Head) error {
	for _, f := range h.fields {
		if !IsToken(f.Name) || len(f.Raw) <= len(f.Name) || f.Raw[len(f.Name)] != ':' {
			return &Error{Code: Malformed, At: -1, What: "field name"}
		}
		if bytes.ContainsFunc(f.Unfolded(), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F }) {
			return &Error{Code: Malformed, At: -1, What: "value of the field " + string(f.Name)}
		}
	}
	return nil
}

// OriginForm returns the target of a request in the form in which servers get it (RFC 9112, section
// 3.2.1), or "*" for OPTIONS; an absolute target is converted if own reports that its authority is
// the server's. Errors: Malformed, also for CONNECT, which has none.
func OriginForm(h *Head, own func(scheme, authority string) bool) (string, error) {
	target, method := string(h.Target()), string(h.Method())
	wrong := &Error{Code: Malformed, At: -1, What: "request target"}
	odd := strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7F || r == '#' })
	if odd || method == "CONNECT" {
		return "", wrong
	}
	if strings.HasPrefix(target, "/") || target == "*" && method == "OPTIONS" {
		return target, nil
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return "", wrong
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	switch authority, path := rest[:end], rest[end:]; {
	case !own(strings.ToLower(scheme), authority):
		return "", wrong
	case path == "" && method == "OPTIONS":
		return "*", nil
	case strings.HasPrefix(path, "/"):
		return path, nil
	default:
		return "/" + path, nil
	}
}

// IsHop reports whether a field concerns one connection (RFC 9110, section 7.6.1): those that
// connection, the tokens of the field Connection, names, and those that always do.
func IsHop(f FieldLine, connection []string) bool {
	for _, name := range hop {
		if f.Is(name) {
			return true
		}
	}
	for _, name := range connection {
		if f.Is(name) {
			return true
		}
	}
	return false
}

var hop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Upgrade"}
