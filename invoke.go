package hhfr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/internal/bind"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Operation is one operation of a service: requests of type Req, replies of type Res.
// [NewOperation] makes one. It is immutable, and safe for concurrent use.
type Operation[Req, Res any] struct {
	action  string
	version soap.Version
	request *Binding[Req]
	reply   *Binding[Res]
}

// NewOperation binds both types. action is the SOAP action, "": none; the zero version is SOAP 1.1.
// Errors are those of [Bind], and Invalid for an action that cannot stand in a field of HTTP.
func NewOperation[Req, Res any](action string, version soap.Version) (*Operation[Req, Res], error) {
	o := &Operation[Req, Res]{action: action, version: cmp.Or(version, soap.V11)}
	if _, err := soap.RequestFields(o.version, action); err != nil {
		return nil, invalid(fmt.Errorf("action: %w", err))
	}
	var err error
	if o.request, err = Bind[Req](); err != nil {
		return nil, err
	}
	if o.reply, err = Bind[Res](); err != nil {
		return nil, err
	}
	return o, nil
}

// Invoke calls an operation of the client's service, and returns the result. Errors are those of
// [Client.Call] and of [Operation.Request] and [Operation.Result].
func Invoke[Req, Res any](ctx context.Context, c *Client, op *Operation[Req, Res], req *Req) (*Res, error) {
	message, err := op.Request(req)
	if err != nil {
		return nil, err
	}
	reply, err := c.Call(ctx, message)
	if err != nil {
		return nil, err
	}
	return op.Result(reply)
}

// Request returns the message that calls the operation: for [Client.Send], if no reply is expected,
// or for [Client.Call] with further fields. Errors are those of [Binding.Append].
func (o *Operation[Req, Res]) Request(req *Req) (*Request, error) {
	if !o.isMade() {
		return nil, errNotMade
	}
	message, err := enveloped(nil, o.version, o.request, req)
	if err != nil {
		return nil, err
	}
	return &Request{Action: o.action, Body: Body(message)}, nil
}

// errNotMade is for operations that [NewOperation] did not make.
var errNotMade = invalid(errors.New("an Operation that NewOperation did not make"))

func (o *Operation[Req, Res]) isMade() bool { return o != nil && o.request != nil }

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	bodyEnd     = "</soap:Body></soap:Envelope>"
)

// enveloped appends the envelope with a value, as [soap.Wrap] makes it.
func enveloped[T any](dst []byte, v soap.Version, b *Binding[T], value *T) ([]byte, error) {
	dst = append(dst, declaration+`<soap:Envelope xmlns:soap="`...)
	dst = append(append(dst, v.Namespace()...), `"><soap:Body>`...)
	dst, err := b.Append(dst, value)
	return append(dst, bodyEnd...), err
}

// Result reads a reply, and closes its body. A SOAP fault is an *[Error] of code Faulted that wraps
// a *[soap.Fault]. What is neither a fault nor a result is Malformed, with the element and what was
// expected there. Header blocks of the reply are passed over.
func (o *Operation[Req, Res]) Result(reply *Reply) (*Res, error) {
	if reply == nil || reply.Body == nil {
		return nil, unreadable(0, errors.New("no reply"))
	}
	defer reply.Body.Close()
	if !o.isMade() {
		return nil, errNotMade
	}
	p := parsers.Get().(*pulled)
	defer p.free()
	length := int64(0)
	if b, ok := reply.Body.(*received); ok {
		length = b.length
	}
	if err := p.take(reply.Body, length); err != nil {
		return nil, err
	}
	opened, err := bind.Open(&p.Parser)
	if err == nil && opened.Fault {
		return nil, faulted(p.message)
	}
	res := new(Res)
	if err == nil {
		err = bind.Read(o.reply.program, &p.Parser, res)
	}
	if err == nil {
		err = bind.Close(&p.Parser)
	}
	if !errors.Is(err, io.EOF) {
		return nil, unreadable(reply.Status, err)
	}
	return res, nil
}

// faulted is the error of a reply with a fault.
func faulted(message []byte) error {
	return &Error{Code: Faulted, Remote: true, Sent: true, Err: faultOf(message)}
}

// unreadable is the error of a reply that is neither a result nor a fault.
func unreadable(status int, err error) error {
	if status != http.StatusOK && status != 0 {
		err = fmt.Errorf("a reply of status %d: %w", status, err)
	}
	return &Error{Code: Malformed, Remote: true, Sent: true, Err: err}
}

// Handler serves the operation, in both versions of SOAP, on any server of net/http and on streams.
// f is called concurrently. If it returns an error that wraps a *[soap.Fault], that is the reply;
// any other error is a fault of the server that does not say why. No result and no error is a reply
// without a body, of status 202.
//
// A request for another operation, one that Req cannot hold, or with header blocks that must be
// understood, is answered by a fault that says so, and f is not called. Requests have up to 64 MiB,
// or as [http.MaxBytesHandler] says. [OperationOf] is for several operations at one URL.
func (o *Operation[Req, Res]) Handler(f func(ctx context.Context, req *Req) (*Res, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "SOAP is posted here", http.StatusMethodNotAllowed)
			return
		}
		if !o.isMade() || f == nil {
			sendFault(w, soap.V11, errNotMade)
			return
		}
		p := parsers.Get().(*pulled)
		defer p.free()
		if err := p.take(r.Body, r.ContentLength); err != nil {
			tooMany := (*http.MaxBytesError)(nil)
			if errors.Is(err, &Error{Code: TooLarge}) || errors.As(err, &tooMany) {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			panic(http.ErrAbortHandler) // it breaks off
		}
		req := new(Req)
		version, err := o.open(p, req)
		var res *Res
		if err == nil {
			res, err = f(r.Context(), req)
		}
		if err != nil {
			sendFault(w, version, err)
			return
		}
		if res == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		message, err := enveloped(p.message[:0], version, o.reply, res)
		if p.message = message; err != nil {
			sendFault(w, version, err)
			return
		}
		send(w, version, http.StatusOK, message)
	})
}

// open reads a request. Errors are faults.
func (o *Operation[Req, Res]) open(p *pulled, req *Req) (soap.Version, error) {
	opened, err := bind.Open(&p.Parser)
	version := cmp.Or(opened.Version, soap.V11)
	wrong := (*bind.EnvelopeError)(nil)
	space, local := p.Name()
	switch {
	case errors.As(err, &wrong):
		return version, &soap.Fault{Code: wrong.Code, Reason: wrong.What}
	case err != nil:
		return version, &soap.Fault{Code: soap.Client, Reason: err.Error()}
	case len(opened.Mandatory) > 0:
		return version, &soap.Fault{
			Code: soap.MustUnderstand, NotUnderstood: opened.Mandatory,
			Reason: fmt.Sprintf("header block %s is not understood", opened.Mandatory[0]),
		}
	case !o.request.program.Fits(space, local):
		called := soap.Name{Space: string(space), Local: string(local)}
		ownSpace, ownLocal := o.request.program.Name()
		return version, &soap.Fault{Code: soap.Client, Reason: fmt.Sprintf("there is no operation %s here, only %s",
			called, soap.Name{Space: ownSpace, Local: ownLocal})}
	}
	if err = bind.Read(o.request.program, &p.Parser, req); err == nil {
		err = bind.Close(&p.Parser)
	}
	if errors.Is(err, io.EOF) {
		return version, nil
	}
	return version, &soap.Fault{Code: soap.Client, Reason: err.Error()}
}

// sendFault answers by a fault. What went wrong in the service is not for its clients, unless it
// says so.
func sendFault(w http.ResponseWriter, v soap.Version, err error) {
	var own *soap.Fault
	if !errors.As(err, &own) {
		own = &soap.Fault{Code: soap.Server, Reason: "the service failed"}
	}
	message, err := soap.BuildFault(v, *own)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	send(w, v, soap.FaultStatus(v, own.Code), message)
}

func send(w http.ResponseWriter, v soap.Version, status int, message []byte) {
	contentType, err := soap.ContentType(v, "")
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(message)))
	w.WriteHeader(status)
	_, _ = w.Write(message) // the server knows if it does not get through
}
