package peer

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ServeHTTP is the plain SOAP form of the services. The request's head is written down as far as net/http still knows it, without the fields
// that no head on a stream has; bodies stream both ways at once.
func (s *Services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	read := &readBody{ReadCloser: r.Body, ended: r.ContentLength == 0}
	request := &streamer.Message{Head: requestHead(r), Body: bodyOf(r, read)}
	if s.Has(r.URL.Path) && r.Method == http.MethodPost {
		// Without it net/http reads the request's body to its end, and drops it, before the first octet of the reply. A writer that cannot do it
		// (HTTP/2 needs not) says so, and is used as it is.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	t := target{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, base: "http://" + r.Host}
	if r.TLS != nil {
		t.base = "https://" + r.Host
	}
	if s.serve(r.Context(), t, request, func(m *streamer.Message) error { return writeReply(w, m, read) }) != nil {
		// A reply cut short must not look whole; this closes the connection without its end.
		panic(http.ErrAbortHandler)
	}
}

// requestHead writes down a request's head, its fields in alphabetical order.
func requestHead(r *http.Request) []byte {
	head, err := http1.AppendRequestLine(nil, r.Method, r.RequestURI, "HTTP/1.1")
	if err != nil {
		return negotiate.DefaultRequestHead(r.URL.EscapedPath())
	}
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range r.Header[name] {
			if longer, err := http1.AppendField(head, name, v); err == nil {
				head = longer
			}
		}
	}
	head = http1.AppendEnd(head)
	if trimmed, err := httpmsg.TrimHead(head); err == nil {
		return trimmed
	}
	return head
}

// sized is a body whose length is known, so that whoever sends it on can say it first.
type sized struct {
	io.Reader
	length int
}

// Len is the length of the whole body, in octets.
func (s sized) Len() int { return s.length }

// readBody knows whether a body was read to its end.
type readBody struct {
	io.ReadCloser
	ended bool
}

// Read reads the body.
func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

func bodyOf(r *http.Request, read io.Reader) io.Reader {
	if n := int(r.ContentLength); n >= 0 && int64(n) == r.ContentLength {
		return sized{read, n}
	}
	return read
}

func writeReply(w http.ResponseWriter, m *streamer.Message, request *readBody) error {
	octets := m.Head
	if octets == nil {
		octets = negotiate.DefaultReplyHead()
	}
	head, n, err := http1.ParseHead(octets, 0)
	if err != nil || !head.IsReply() || head.Status() < 200 {
		return &Error{Code: Malformed, At: int64(n), Err: err}
	}
	header := w.Header()
	for _, f := range head.Fields() {
		if !f.Is("Content-Length") && !f.Is("Connection") && !f.Is("Transfer-Encoding") {
			// Not by Add: names keep their case.
			name := string(f.Name)
			header[name] = append(header[name], string(f.Unfolded()))
		}
	}
	if _, ok := head.Get("Content-Type"); !ok {
		// Otherwise net/http guesses one.
		header["Content-Type"] = nil
	}
	if l, ok := m.Body.(interface{ Len() int }); ok {
		header.Set("Content-Length", strconv.Itoa(l.Len()))
	} else if m.Body == nil && head.Status() != http.StatusNoContent {
		header.Set("Content-Length", "0")
	}
	if head.Status() >= http.StatusBadRequest && !request.ended {
		// Nobody reads the rest, so that net/http closes the connection: the client must not send another request on it.
		header.Set("Connection", "close")
	}
	w.WriteHeader(head.Status())
	if m.Body == nil {
		return nil
	}
	_, err = io.Copy(w, m.Body)
	return err
}
