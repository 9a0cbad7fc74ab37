// Package httpmsg turns messages of streams into those of net/http, and back.
package httpmsg

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// RequestHead returns the head that a request of net/http has on a stream, its fields in
// alphabetical order. Errors: Malformed.
func RequestHead(req *http.Request) ([]byte, error) {
	head, err := http1.AppendRequestLine(nil, req.Method, requestTarget(req.URL), "HTTP/1.1")
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	fields := req.Header
	if req.URL.User != nil && req.Header.Get("Authorization") == "" {
		password, _ := req.URL.User.Password()
		with := &http.Request{Header: req.Header.Clone()}
		with.SetBasicAuth(req.URL.User.Username(), password)
		fields = with.Header
	}
	return appendHeader(head, fields, func(err error) error { return negotiate.AsMalformed(err) })
}

// ReplyHead returns the head of a reply on a stream, its fields in alphabetical order; nil if it is
// the default one. A field that cannot be written is left out.
func ReplyHead(status int, header http.Header) []byte {
	head, err := http1.AppendStatusLine(nil, "HTTP/1.1", status, http.StatusText(status))
	if err != nil {
		head, _ = http1.AppendStatusLine(nil, "HTTP/1.1", http.StatusInternalServerError, "")
	}
	head, _ = appendHeader(head, header, func(error) error { return nil })
	if bytes.Equal(head, negotiate.DefaultReplyHead()) {
		return nil
	}
	return head
}

// appendHeader completes a head with the fields of a message of net/http, except for those about a
// connection.
func appendHeader(head []byte, header http.Header, failed func(error) error) ([]byte, error) {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if IsFraming(http1.Field{Name: []byte(name)}) {
			continue
		}
		for _, v := range header[name] {
			longer, err := http1.AppendField(head, name, v)
			if err != nil {
				if err := failed(err); err != nil {
					return nil, err
				}
				continue
			}
			head = longer
		}
	}
	return http1.AppendEnd(head), nil
}

// BodyOf returns a request's body in the form that a session prefers: in memory if it is short,
// else one that can be read again if the request allows that.
func BodyOf(req *http.Request) io.Reader {
	const short = 64 << 10
	if req.Body == http.NoBody {
		return nil
	}
	// A length of 0 with a body means that it is not known.
	if req.ContentLength > 0 && req.ContentLength <= short {
		data, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err == nil {
			return bytes.NewReader(data)
		}
		return io.MultiReader(bytes.NewReader(data), Failing(err))
	}
	if req.GetBody != nil {
		return &rewound{body: req.Body, again: req.GetBody}
	}
	return req.Body
}

// rewound turns a request's GetBody into a seek to the start.
type rewound struct {
	body  io.ReadCloser
	again func() (io.ReadCloser, error)
	moved bool
}

func (r *rewound) Read(p []byte) (int, error) {
	r.moved = true
	return r.body.Read(p)
}

func (r *rewound) Close() error { return r.body.Close() }

// Seek goes to the start, and reports where it is only there.
func (r *rewound) Seek(offset int64, whence int) (int64, error) {
	switch {
	case offset != 0 || whence == io.SeekEnd || whence == io.SeekCurrent && r.moved:
		return 0, errors.ErrUnsupported
	case whence == io.SeekCurrent:
		return 0, nil
	}
	body, err := r.again()
	if err != nil {
		return 0, err
	}
	_ = r.body.Close()
	r.body, r.moved = body, false
	return 0, nil
}

// Response turns a reply into the response that net/http gives for req. Errors: Malformed, for a
// malformed head; the body is closed then.
func Response(m *streamer.Message, req *http.Request) (*http.Response, error) {
	octets := m.Head
	if octets == nil {
		octets = negotiate.DefaultReplyHead()
	}
	head, n, err := http1.ParseHead(octets, 0)
	if err != nil || !head.IsReply() {
		_ = CloseReader(m.Body)
		return nil, &negotiate.Error{Code: negotiate.Malformed, At: int64(n), Remote: true, Err: err}
	}
	resp := &http.Response{
		Status:        strings.TrimSpace(string(head.StartLine()[min(len(head.Version())+1, len(head.StartLine())):])),
		StatusCode:    head.Status(),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{},
		ContentLength: -1,
		Request:       req,
		Body:          http.NoBody,
	}
	for _, f := range head.Fields() {
		resp.Header.Add(string(f.Name), string(f.Unfolded()))
	}
	if m.Body == nil {
		resp.ContentLength = 0
		return resp, nil
	}
	resp.Body = io.NopCloser(m.Body)
	if c, ok := m.Body.(io.ReadCloser); ok {
		resp.Body = c
	}
	return resp, nil
}
