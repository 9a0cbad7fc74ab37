package listing

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// PartReport is one part of a message with attachments (MTOM).
type PartReport struct {
	// its Content-ID without brackets, by which the envelope refers to it; empty: it has none
	ID     string `json:"id"`
	Type   string `json:"type"`   // its Content-Type
	Octets int64  `json:"octets"` // its length as it is in the message
}

// mostParts bounds the parts of a message that are listed.
const mostParts = 256

// partsOf lists the parts of a message, the envelope among them, as far as they can be read; none
// if it is an envelope alone.
func partsOf(m *ListedMessage) (parts []PartReport) {
	if !m.Whole() {
		return nil
	}
	boundary := boundaryOf(m)
	if boundary == "" {
		return nil
	}
	for r := multipart.NewReader(m.Reader(), boundary); len(parts) < mostParts; {
		part, err := r.NextRawPart()
		if err != nil {
			break
		}
		n, err := io.Copy(io.Discard, part)
		parts = append(parts, PartReport{
			ID:   strings.Trim(part.Header.Get("Content-ID"), "<>"),
			Type: part.Header.Get("Content-Type"), Octets: n,
		})
		if err != nil {
			break
		}
	}
	return parts
}

// boundaryOf is what separates the parts of a message: its HTTP head says so, or its first line.
func boundaryOf(m *ListedMessage) string {
	if _, lines, found := bytes.Cut(m.Head, []byte("\n")); found {
		head, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines))).ReadMIMEHeader()
		kind, params, err := mime.ParseMediaType(head.Get("Content-Type"))
		if err != nil || !strings.HasPrefix(kind, "multipart/") {
			return ""
		}
		return params["boundary"]
	}
	line, _, whole := bytes.Cut(bytes.TrimLeft(m.Body[:min(len(m.Body), 128)], "\r\n"), []byte("\n"))
	if mark, ok := bytes.CutPrefix(line, []byte("--")); ok && whole {
		return string(bytes.TrimSpace(mark))
	}
	return ""
}
