package soap

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

var declaration = regexp.MustCompile(`^<\?xml[ \t\r\n][^>]*\?>[ \t\r\n]*`)

var declaredEncoding = regexp.MustCompile(`encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z0-9._-]+)["']`)

// Wrap puts the content of a Body into an envelope of the version, in UTF-8. Nothing is parsed. The
// result contains body unchanged, except for a byte order mark and an XML declaration at its start,
// which cannot stand inside. A body declared in another encoding than UTF-8, or with a document
// type declaration, is an [Error].
func Wrap(v Version, body []byte) ([]byte, error) {
	if v.Namespace() == "" {
		return nil, &Error{Code: BadVersion, At: -1}
	}
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	if d := declaration.Find(body); d != nil {
		if m := declaredEncoding.FindSubmatch(d); m != nil && !strings.EqualFold(string(m[1]), "utf-8") &&
			!strings.EqualFold(string(m[1]), "us-ascii") {
			return nil, &Error{Code: BadCharset, At: 0, Err: fmt.Errorf("%q", m[1])}
		}
		body = body[len(d):]
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("<!DOCTYPE")) {
		return nil, &Error{Code: Forbidden, At: 0}
	}
	out := make([]byte, 0, len(body)+256)
	out = append(out, `<?xml version="1.0" encoding="UTF-8"?>`...)
	out = append(out, "\n<soap:Envelope xmlns:soap=\""+v.Namespace()+"\"><soap:Body>"...)
	out = append(out, body...)
	return append(out, "</soap:Body></soap:Envelope>"...), nil
}
