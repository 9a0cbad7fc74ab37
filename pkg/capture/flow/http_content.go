package flow

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
)

var errLimit = errors.New("longer than the limit")

// decodeContent undoes the content coding of m's entity, up to limit octets.
func decodeContent(m *Message, limit int64) {
	m.Body = m.Entity
	codings := m.Head.Tokens("Content-Encoding")
	if len(codings) == 1 && codings[0] == "identity" {
		return
	}
	m.Coding = strings.Join(codings, ", ")
	if m.Coding == "" || len(m.Entity) == 0 {
		return
	}
	body, err := undo(m.Coding, m.Entity, limit)
	if errors.Is(err, io.ErrUnexpectedEOF) && !m.Complete() {
		err = nil // as far as it is there
	}
	if m.CodingErr = err; err == nil || errors.Is(err, errLimit) {
		m.Body = body
	}
}

func undo(coding string, entity []byte, limit int64) ([]byte, error) {
	in := bufio.NewReader(bytes.NewReader(entity))
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
		return nil, fmt.Errorf("content coding %.40q is not known", coding)
	}
	if err != nil {
		return nil, fmt.Errorf("content coding %s: %w", coding, err)
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(body)) > limit {
		return body[:limit], fmt.Errorf("content coding %s: %w", coding, errLimit)
	}
	if err != nil {
		return body, fmt.Errorf("content coding %s: %w", coding, err)
	}
	return body, nil
}
