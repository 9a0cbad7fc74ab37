// Package httpmsg turns messages of streams into those of net/http, and back.
package httpmsg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// shortHead is the length of heads that are built in one piece of memory, in bytes.
const shortHead = 512

// RequestHead returns the head that a request of net/http has on a stream, its fields in
// alphabetical order. Errors: Malformed.
func RequestHead(req *http.Request) ([]byte, error) {
	var short [shortHead]byte
	head, err := http1.AppendRequestLine(short[:0], req.Method, requestTarget(req.URL), "HTTP/1.1")
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
	head, left := appendHeader(head, fields)
	if left != nil {
		return nil, negotiate.AsMalformed(left)
	}
	return bytes.Clone(head), nil
}

// ReplyHead returns the head of a reply on a stream, its fields in alphabetical order; nil if it is
// the default one. A field that cannot be written is left out.
func ReplyHead(status int, header http.Header) []byte {
	var short [shortHead]byte
	head, err := http1.AppendStatusLine(short[:0], "HTTP/1.1", status, http.StatusText(status))
	if err != nil {
		head, _ = http1.AppendStatusLine(short[:0], "HTTP/1.1", http.StatusInternalServerError, "")
	}
	head, _ = appendHeader(head, header)
	if bytes.Equal(head, implicitReply) {
		return nil
	}
	return bytes.Clone(head)
}

// canonicalAction is how net/http has the name SOAPAction. It is written as in SOAP 1.1: so it is
// in the default head, and some servers know no other case.
const canonicalAction = "Soapaction"

// appendHeader completes a head with the fields of a message of net/http, except for those about a
// connection. It leaves out fields that cannot be written, and returns the error of the last one.
func appendHeader(head []byte, header http.Header) (_ []byte, left error) {
	var few [16]string
	names := few[:0]
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if isFraming(name) {
			continue
		}
		as := name
		if name == canonicalAction {
			as = "SOAPAction"
		}
		for _, v := range header[name] {
			longer, err := http1.AppendField(head, as, v)
			if err != nil {
				left = err
				continue
			}
			head = longer
		}
	}
	return http1.AppendEnd(head), left
}

// BodyOf returns a request's body in the form that a session prefers: in memory if it is short,
// else one that can be read again if the request allows that. A body of another length than the
// request says cannot be read, as with net/http.
func BodyOf(req *http.Request) io.Reader {
	const short = 64 << 10
	if req.Body == http.NoBody {
		return nil
	}
	// A length of 0 with a body means that it is not known.
	if req.ContentLength > 0 && req.ContentLength <= short {
		data, err := readAll(req.Body, req.ContentLength)
		_ = req.Body.Close()
		if err == nil && int64(len(data)) != req.ContentLength {
			return Failing(otherLength(req.ContentLength, int64(len(data))))
		}
		if err == nil {
			return bytes.NewReader(data)
		}
		return io.MultiReader(bytes.NewReader(data), Failing(err))
	}
	body := req.Body
	if req.ContentLength > 0 {
		body = &declaredBody{ReadCloser: body, length: req.ContentLength}
	}
	if req.GetBody != nil {
		return &rewound{body: body, again: req.GetBody, length: req.ContentLength}
	}
	return body
}

// declaredBody is the body of a request that says how long it is.
type declaredBody struct {
	io.ReadCloser
	length, read int64
}

// Read implements [io.Reader].
func (b *declaredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.read > b.length || errors.Is(err, io.EOF) && b.read < b.length {
		return n, otherLength(b.length, b.read)
	}
	return n, err
}

// otherLength is the error of a body that is longer or shorter than its request says.
func otherLength(declared, read int64) error {
	return fmt.Errorf("ContentLength is %d, and the body has %d bytes", declared, read)
}

// readAll is [io.ReadAll] for a body that is probably of this length.
func readAll(body io.Reader, length int64) ([]byte, error) {
	all := make([]byte, 0, length+1) // one more, so that the end is seen without another allocation
	for {
		n, err := body.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case len(all) == cap(all):
			all = slices.Grow(all, len(all))
		}
	}
}

// rewound turns a request's GetBody into a seek to the start.
type rewound struct {
	body   io.ReadCloser
	again  func() (io.ReadCloser, error)
	length int64 // 0 or less: not known
	moved  bool
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
	if r.length > 0 {
		body = &declaredBody{ReadCloser: body, length: r.length}
	}
	r.body, r.moved = body, false
	return 0, nil
}
