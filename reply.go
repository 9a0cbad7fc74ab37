package hhfr

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/pkg/soap"
)

// Reply is what a service answered: of any status, a fault as well.
type Reply struct {
	// Status is that of HTTP; 0 in a reply to be sent ([Message.Reply]): 200.
	Status int
	// Header are the HTTP fields.
	Header http.Header
	// Body is the envelope; never nil in a reply that came. It must be read to its end or closed.
	// What it says when it breaks off is an [Error] of code FateUnknown.
	Body io.ReadCloser
}

// maxReadAll is the longest reply that ReadAll reads, in bytes.
const maxReadAll = 64 << 20

// ReadAll reads the body to its end and closes it. One of more than 64 MiB is TooLarge; it can be
// read by Body.
func (r *Reply) ReadAll() ([]byte, error) {
	defer r.Body.Close()
	all, err := io.ReadAll(io.LimitReader(r.Body, maxReadAll+1))
	if err == nil && len(all) > maxReadAll {
		err = &Error{Code: TooLarge, Sent: true, Err: fmt.Errorf("a reply of more than %d bytes", maxReadAll)}
		return all[:maxReadAll], err
	}
	return all, err
}

// Fault is the SOAP fault that the reply is; nil if it is none. It reads no more than it needs to
// know that, and Body still gives all of it.
func (r *Reply) Fault() *soap.Fault {
	looked, ok := r.Body.(*looking)
	if !ok {
		looked = &looking{ReadCloser: r.Body}
		r.Body = looked
	}
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

// looking is a body whose beginning was looked at.
type looking struct {
	io.ReadCloser
	start []byte // what was read, and not given out yet
	err   error  // what comes behind it
}

// maxFault is the longest fault that is read, in bytes: devices put traces into them.
const maxFault = 1 << 20

// further reads on; false if there is no more, or it would be more than most.
func (l *looking) further(most int) bool {
	if l.err != nil || len(l.start) >= most {
		return false
	}
	var more [4 << 10]byte
	n, err := l.ReadCloser.Read(more[:min(len(more), most-len(l.start))])
	l.start, l.err = append(l.start, more[:n]...), err
	return true
}

// fault reads the fault that the body is. One that cannot be read says why as its reason.
func (l *looking) fault() *soap.Fault {
	for l.further(maxFault) {
	}
	err := l.err
	if err == nil {
		err = fmt.Errorf("a fault of more than %d bytes", maxFault)
	}
	if errors.Is(err, io.EOF) {
		var envelope *soap.Envelope
		if envelope, err = soap.Parse(l.start, soap.Limits{MaxBytes: maxFault}); err == nil {
			if f, ok := envelope.Fault(); ok {
				return &f
			}
			err = errors.New("a fault that says nothing")
		}
	}
	return &soap.Fault{Reason: err.Error()}
}

// Read implements [io.Reader].
func (l *looking) Read(p []byte) (int, error) {
	switch {
	case len(l.start) > 0:
		n := copy(p, l.start)
		l.start = l.start[n:]
		return n, nil
	case l.err != nil:
		return 0, l.err
	}
	return l.ReadCloser.Read(p)
}

// replyBody is the body of a reply that came. Where it breaks off, the request has no whole reply.
type replyBody struct {
	io.ReadCloser
	over func() // at the end, or when it is closed, once; nil: nothing
}

// Read implements [io.Reader].
func (a *replyBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		err = brokenOff(err)
	}
	a.end()
	return n, err
}

// Close implements [io.Closer].
func (a *replyBody) Close() error {
	err := a.ReadCloser.Close()
	a.end()
	return err
}

func (a *replyBody) end() {
	if a.over != nil {
		a.over()
		a.over = nil
	}
}

// brokenOff is the error of a reply that came in part.
func brokenOff(err error) error {
	var own *Error
	errors.As(fault(err), &own)
	return &Error{Code: FateUnknown, Remote: own.Remote, Sent: true, Err: err}
}
