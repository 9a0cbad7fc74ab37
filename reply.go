package hhfr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/pkg/soap"
)

// Reply is the answer of a service: of any status, including faults.
type Reply struct {
	// Status is the HTTP status; 0 in a reply to be sent ([Message.Reply]): 200.
	Status int
	// Header are the HTTP fields.
	Header http.Header
	// Body is the envelope; nil: empty, which it never is in a received reply. It must be read to
	// its end or closed. If it breaks off, the error is an [Error] of code FateUnknown.
	Body io.ReadCloser
}

// maxReadAll is the longest reply that ReadAll reads, in bytes.
const maxReadAll = 64 << 20

// ReadAll reads the body to its end and closes it. A body of more than 64 MiB is TooLarge; it can
// be read by Body.
func (r *Reply) ReadAll() ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	room := int64(bytes.MinRead)
	if b, ok := r.Body.(*received); ok && b.length > 0 {
		room = min(b.length, maxReadAll) + 1 // the last Read finds the end
	}
	all := make([]byte, 0, room)
	for {
		n, err := r.Body.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case len(all) > maxReadAll:
			return all[:maxReadAll], tooLong("reply")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case len(all) == cap(all):
			all = slices.Grow(all, 1)
		}
	}
}

func tooLong(what string) error {
	return &Error{Code: TooLarge, Sent: true, Err: fmt.Errorf("a %s of more than %d bytes", what, maxReadAll)}
}

// Fault returns the SOAP fault in the reply; nil if it is none. It reads no more than it needs for
// that, and Body still returns all of it.
func (r *Reply) Fault() *soap.Fault {
	if r.Body == nil {
		return nil
	}
	looked := lookInto(r.Body)
	r.Body = looked
	for found := (soap.Recognized{}); !found.Complete; {
		found = soap.Recognize(looked.start)
		if found.Fault {
			return looked.fault()
		}
		if found.Complete || !looked.further(soap.MaxRecognize) {
			return nil
		}
	}
	return nil
}

// looking is a body whose beginning was inspected.
type looking struct{ resumed }

// maxFault is the longest fault that is read, in bytes: devices put stack traces into faults.
const maxFault = 1 << 20

// further reads more; false if there is no more, or if it would exceed most.
func (l *looking) further(most int) bool {
	if l.err != nil || len(l.start) >= most {
		return false
	}
	var more [4 << 10]byte
	n, err := l.rest.Read(more[:min(len(more), most-len(l.start))])
	l.start, l.err = append(l.start, more[:n]...), err
	return true
}

// fault parses the body as a fault. If it cannot be parsed, the reason says why.
func (l *looking) fault() *soap.Fault {
	for l.further(maxFault) {
	}
	err := l.err
	if err == nil {
		err = fmt.Errorf("a fault of more than %d bytes", maxFault)
	}
	if errors.Is(err, io.EOF) {
		return faultOf(l.start)
	}
	return &soap.Fault{Reason: err.Error()}
}

// faultOf is the fault in an envelope. If it cannot be parsed, the reason says why.
func faultOf(message []byte) *soap.Fault {
	envelope, err := soap.Parse(message, soap.Limits{MaxBytes: maxFault})
	if err == nil {
		if f, ok := envelope.Fault(); ok {
			return &f
		}
		err = errors.New("a fault that says nothing")
	}
	return &soap.Fault{Reason: err.Error()}
}
