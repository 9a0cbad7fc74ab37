package flow

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
)

var errLimit = errors.New("longer than the limit")

// decodeContent undoes the content coding of m's body, up to limit bytes.
func decodeContent(m *HTTPMessage, limit int64, bodies func() BodyStore) {
	codings := m.head.Tokens("Content-Encoding")
	if len(codings) == 1 && codings[0] == "identity" {
		return
	}
	m.Coding = strings.Join(codings, ", ")
	if m.Coding == "" || m.Body.Len() == 0 {
		return
	}
	plain := bodies()
	err := undo(plain, m.Coding, m.Body.Reader(), limit)
	if errors.Is(err, io.ErrUnexpectedEOF) && !m.Complete() {
		err = nil // as far as it was captured
	}
	if m.CodingErr = err; err == nil || errors.Is(err, errLimit) {
		m.Body.Free()
		m.Body = plain
		return
	}
	plain.Free()
}

// undo writes the decoded content, up to limit bytes.
func undo(to io.Writer, coding string, coded io.Reader, limit int64) error {
	in := bufio.NewReader(coded)
	var r io.Reader
	var err error
	switch coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(in)
	case "deflate": // zlib by the standard, often without its header
		if magic, _ := in.Peek(2); len(magic) == 2 && magic[0]&15 == 8 && (int(magic[0])<<8|int(magic[1]))%31 == 0 {
			r, err = zlib.NewReader(in)
		} else {
			r = flate.NewReader(in)
		}
	default:
		return fmt.Errorf("content coding %.40q is not known", coding)
	}
	if err != nil {
		return fmt.Errorf("content coding %s: %w", coding, err)
	}
	n, err := io.Copy(to, io.LimitReader(r, limit))
	if err == nil && n == limit {
		if more, _ := io.ReadFull(r, make([]byte, 1)); more > 0 {
			err = errLimit
		}
	}
	if err != nil {
		return fmt.Errorf("content coding %s: %w", coding, err)
	}
	return nil
}
