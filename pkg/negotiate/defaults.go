package negotiate

import (
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/soap"
)

// The fields of a message without a head (docs/negotiation.md, section 4).
var (
	DefaultRequestFields = []soap.Field{
		{Name: "Content-Type", Value: "text/xml; charset=utf-8"},
		{Name: "SOAPAction", Value: `""`},
	}
	DefaultReplyFields = []soap.Field{{Name: "Content-Type", Value: "text/xml; charset=utf-8"}}
)

// isDefault reports whether fields of an offer or answer are those of this version; no fields mean
// those.
func isDefault(fields, defaults []soap.Field) bool {
	if fields == nil {
		return true
	}
	if len(fields) != len(defaults) {
		return false
	}
	for i, f := range fields {
		if !strings.EqualFold(f.Name, defaults[i].Name) || f.Value != defaults[i].Value {
			return false
		}
	}
	return true
}

// DefaultRequestHead returns the head that a request without one has in a session negotiated at
// path: a POST to path, with the default fields. A path that cannot stand in a request line is
// replaced by "/".
func DefaultRequestHead(path string) []byte {
	head, err := http1.AppendRequestLine(nil, "POST", path, "HTTP/1.1")
	if err != nil {
		head, _ = http1.AppendRequestLine(nil, "POST", "/", "HTTP/1.1")
	}
	return appendFields(head, DefaultRequestFields)
}

// DefaultReplyHead returns the head that a reply without one has: status 200, with the default
// fields.
func DefaultReplyHead() []byte {
	return appendFields([]byte("HTTP/1.1 200 OK\r\n"), DefaultReplyFields)
}

// appendFields completes a head with fields that this package made.
func appendFields(head []byte, fields []soap.Field) []byte {
	for _, f := range fields {
		head = append(head, f.Name+": "+f.Value+"\r\n"...)
	}
	return http1.AppendEnd(head)
}

// PathOf returns the escaped path of a URL; "/" if it has none.
func PathOf(u *url.URL) string {
	if p := u.EscapedPath(); strings.HasPrefix(p, "/") {
		return p
	}
	return "/"
}
