package hhfr

import (
	"bytes"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/pkg/soap"
)

// Operation is what the request asks for: the local name of the first element in the Body of its
// envelope, "GetStatus" for example; "" if there is none within the first 64 KiB. It waits for as
// much of Body as it needs, and Body still gives all of it.
func (r *Request) Operation() (name string) {
	name, r.Body = operation(r.Body)
	return name
}

// Operation is that of a [Request], and of a reply the element that answers it, "Fault" for
// example.
func (m *Message) Operation() (name string) {
	name, m.Body = operation(m.Body)
	return name
}

// OperationOf is Operation for a service: the one that a request asks for, whatever way it came.
// The service reads all of the body behind it.
func OperationOf(r *http.Request) (name string) {
	if r.Body == nil || r.Body == http.NoBody {
		return ""
	}
	name, body := operation(r.Body)
	r.Body = body.(io.ReadCloser)
	return name
}

// operation is the operation of an envelope, and a body that gives all of it. Of a body that can be
// read again it is the same one; otherwise it has a Close.
func operation(body io.Reader) (string, io.Reader) {
	switch b := body.(type) {
	case nil:
		return "", nil
	case memory:
		return operationOf(b.Reader), body
	case *bytes.Reader:
		return operationOf(b), body
	case io.ReadSeeker:
		if at, err := b.Seek(0, io.SeekCurrent); err == nil {
			name, _ := operation(io.LimitReader(b, soap.MaxRecognize))
			if _, err := b.Seek(at, io.SeekStart); err != nil {
				return name, failing{err}
			}
			return name, body
		}
	}
	looked := lookInto(body)
	for {
		found := soap.Recognize(looked.start)
		if found.Complete || !looked.further(soap.MaxRecognize) {
			return found.Operation.Local, looked
		}
	}
}

// operationOf is the operation of an envelope in memory.
func operationOf(b *bytes.Reader) string {
	again := *b
	start, _ := io.ReadAll(io.LimitReader(&again, soap.MaxRecognize))
	return string(soap.OperationName(start))
}

// lookInto returns a body of which the beginning can be looked at.
func lookInto(body io.Reader) *looking {
	if b, ok := body.(*looking); ok {
		return b
	}
	return &looking{resumed{rest: body}}
}
