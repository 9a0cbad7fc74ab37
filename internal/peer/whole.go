package peer

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	// maxWholeRequest is the longest request that is read at once, in bytes.
	maxWholeRequest = 256 << 10
	// mostNames is how many names of a request are remembered.
	mostNames = 64
)

// wholeRequest reports whether a request can be read at once: a short one in UTF-8.
func wholeRequest(r *http.Request) bool {
	if r.ContentLength <= 0 || r.ContentLength > maxWholeRequest || len(r.Header["Content-Encoding"]) > 0 {
		return false
	}
	switch r.Header.Get("Content-Type") {
	case xmlType, soapType: // as most have it
		return true
	}
	_, charset := codings(r.Header)
	return charset == "" || charset == "utf-8"
}

// medium is a request that was read at once, and what reads its tags, much faster than those of a
// request that is read as it comes. What it refuses may still be read so.
type medium struct {
	envelope
	parser pull.Parser
	octets []byte
	whole  bool
	names  map[string]string
}

var mediums = sync.Pool{New: func() any {
	m := &medium{names: map[string]string{}}
	m.parser.MaxDepth = maxDepth
	return m
}}

func (m *medium) free() {
	m.parser.Reset(nil)
	if len(m.names) >= mostNames {
		clear(m.names)
	}
	mediums.Put(m)
}

// take reads the body of a request, and begins with it. It returns a body that reads the same once
// more.
func (m *medium) take(r *http.Request) io.ReadCloser {
	if m.octets = m.octets[:0]; int64(cap(m.octets)) <= r.ContentLength {
		m.octets = make([]byte, 0, r.ContentLength+1)
	}
	var err error
	for err == nil && len(m.octets) < cap(m.octets) {
		var n int
		n, err = r.Body.Read(m.octets[len(m.octets):cap(m.octets)])
		m.octets = m.octets[:len(m.octets)+n]
	}
	m.whole = errors.Is(err, io.EOF)
	m.parser.Reset(m.octets)
	m.envelope = envelope{tags: m, version: soap.V11, attrs: m.attrs[:0], value: m.value[:0]}
	return again{bytes.NewReader(m.octets), err, r.Body}
}

// again reads what was read of a body before, then what came of that, and the rest if there is one.
type again struct {
	read *bytes.Reader
	err  error
	io.ReadCloser
}

// Read implements [io.Reader].
func (a again) Read(p []byte) (int, error) {
	switch {
	case a.read.Len() > 0:
		return a.read.Read(p)
	case a.err != nil:
		return 0, a.err
	}
	return a.ReadCloser.Read(p)
}

func (m *medium) next(e *envelope) (pull.Found, error) {
	step, err := m.parser.Next()
	switch step {
	case pull.StartTag:
		space, local := m.parser.Name()
		e.name.Space, e.name.Local = m.interned(e.name.Space, space), m.interned(e.name.Local, local)
		e.attrs = e.attrs[:0]
		for _, a := range m.parser.Attrs() {
			e.attrs = append(e.attrs, xml.Attr{
				Name: xml.Name{Space: string(a.Space), Local: string(a.Local)}, Value: string(a.Value),
			})
		}
	case pull.Chars:
		e.chars = m.parser.Text()
	case pull.EndTag:
	}
	return step, err
}

// interned is a name as a string; last is one that it often is.
func (m *medium) interned(last string, name []byte) string {
	if string(name) == last {
		return last
	}
	s, ok := m.names[string(name)]
	if !ok {
		s = string(name)
		if len(m.names) < mostNames {
			m.names[s] = s
		}
	}
	return s
}
