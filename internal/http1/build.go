package http1

import (
	"bytes"
	"strconv"
	"strings"
)

// AppendRequestLine appends a request line, exactly as given. A part that would break the line is
// [Invalid].
func AppendRequestLine(dst []byte, method, target, version string) ([]byte, error) {
	longer := append(append(append(append(append(dst, method...), ' '), target...), ' '), version...)
	if line := longer[len(dst):]; !IsRequestLine(line) || breaks(line) || strings.ContainsAny(target, " \t") {
		return dst, &Error{Code: Invalid, At: int64(len(dst)), What: "request line " + strconv.Quote(string(line))}
	}
	return append(longer, "\r\n"...), nil
}

// AppendStatusLine appends a status line, exactly as given. A part that would break the line is
// [Invalid].
func AppendStatusLine(dst []byte, version string, status int, reason string) ([]byte, error) {
	longer := append(strconv.AppendInt(append(append(dst, version...), ' '), int64(status), 10), ' ')
	longer = append(longer, reason...)
	if line := longer[len(dst):]; !IsStatusLine(line) || breaks(line) {
		return dst, &Error{Code: Invalid, At: int64(len(dst)), What: "status line " + strconv.Quote(string(line))}
	}
	return append(longer, "\r\n"...), nil
}

// AppendField appends a field line, name and value exactly as given; the name keeps its case. A
// name that is no token, or a value with a line end or NUL in it, is [Invalid].
func AppendField(dst []byte, name, value string) ([]byte, error) {
	if !IsToken([]byte(name)) || strings.ContainsAny(value, lineBreaks) {
		return dst, &Error{Code: Invalid, At: int64(len(dst)), What: "field " + strconv.Quote(name)}
	}
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...), nil
}

// AppendEnd appends the empty line that ends a head.
func AppendEnd(dst []byte) []byte { return append(dst, "\r\n"...) }

// AppendChunk appends p as one chunk; an empty p appends nothing.
func AppendChunk(dst, p []byte) []byte {
	if len(p) == 0 {
		return dst
	}
	dst = append(strconv.AppendInt(dst, int64(len(p)), 16), "\r\n"...)
	return append(append(dst, p...), "\r\n"...)
}

// AppendLastChunk appends the last chunk and an empty trailer section.
func AppendLastChunk(dst []byte) []byte { return append(dst, "0\r\n\r\n"...) }

// AppendEdited appends the head h to dst as received, with two exceptions: fields for which drop
// (nil: none) reports true are left out, and add, whole field lines, precedes the empty line.
func AppendEdited(dst []byte, h *Head, drop func(FieldLine) bool, add []byte) []byte {
	at := h.before + bytes.IndexByte(h.Octets[h.before:], '\n') + 1
	dst = append(dst, h.Octets[:at]...)
	for _, f := range h.fields {
		if drop == nil || !drop(f) {
			dst = append(dst, f.Raw...)
		}
		at += len(f.Raw)
	}
	dst = append(dst, add...)
	return append(dst, h.Octets[at:]...)
}

// AppendLength appends the head h to dst as received, but for its Content-Length, which is n.
func AppendLength(dst []byte, h *Head, n int) []byte {
	at := 0
	for _, f := range h.fields {
		if f.Is("Content-Length") {
			value := bytes.Index(h.Octets, f.Raw) + bytes.LastIndex(f.Raw, f.Value)
			dst = strconv.AppendInt(append(dst, h.Octets[at:value]...), int64(n), 10)
			at = value + len(f.Value)
		}
	}
	return append(dst, h.Octets[at:]...)
}

// lineBreaks cannot stand in a line: some reader takes each of them for the end of one.
const lineBreaks = "\r\n\x00"

func breaks(line []byte) bool { return bytes.ContainsAny(line, lineBreaks) }
