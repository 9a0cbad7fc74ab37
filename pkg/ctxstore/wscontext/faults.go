package wscontext

import (
	"errors"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// The faults of the service: names of the element in the fault's detail.
const (
	faultUnknown  = "unknownContextFault"
	faultGeneral  = "generalFault"
	faultInvalid  = "invalidContextFault"
	faultState    = "invalidStateFault"
	faultVersion  = "versionConflictFault"
	faultTimeout  = "timeoutOutOfRangeFault"
	faultParent   = "parentActivityUnknownFault"
	faultChild    = "childActivityPendingFault"
	faultNotGiven = "noPermissionFault"
)

// contextFault is a fault of the service.
type contextFault struct {
	fault  string
	uri    string
	reason string
	code   ctxstore.Code // of a general fault
}

func (r *contextFault) Error() string { return r.reason }

// general are the codes that general faults have.
var general = []ctxstore.Code{
	ctxstore.Corrupt, ctxstore.Full, ctxstore.Closed, ctxstore.Unavailable, ctxstore.Held,
}

// refusalOf is the fault for an error of the store; inside is true if its reason is the service's.
func refusalOf(err error) (r *contextFault, inside bool) {
	var mine *contextFault
	var e *ctxstore.Error
	switch {
	case errors.As(err, &mine):
		return mine, false
	case !errors.As(err, &e):
		return &contextFault{fault: faultGeneral, reason: "the service failed", code: ctxstore.Unavailable}, true
	}
	switch e.Code {
	case ctxstore.NotFound:
		return unknown(e.URI), false
	case ctxstore.Conflict:
		return &contextFault{fault: faultVersion, uri: e.URI, reason: "the context has another version"}, false
	case ctxstore.Invalid:
		reason := "the context cannot be stored"
		if e.Err != nil {
			reason = e.Err.Error()
		}
		return &contextFault{fault: faultInvalid, uri: e.URI, reason: reason}, false
	case ctxstore.Permission:
		return &contextFault{fault: faultNotGiven, uri: e.URI, reason: ctxstore.Reason(err)}, true
	case ctxstore.Corrupt, ctxstore.Full, ctxstore.Closed, ctxstore.Unavailable, ctxstore.Held:
	}
	return &contextFault{fault: faultGeneral, uri: e.URI, reason: ctxstore.Reason(err), code: e.Code}, true
}

func unknown(uri string) *contextFault {
	return &contextFault{fault: faultUnknown, uri: uri, reason: "there is no such context"}
}

// soap is the fault as SOAP has it.
func (r *contextFault) soap() soap.Fault {
	detail := soap.Element{Name: std(r.fault)}
	if r.uri != "" {
		detail.Children = append(detail.Children, soap.Element{Name: std("context-identifier"), Text: r.uri})
	}
	code := soap.Client
	if r.fault == faultGeneral {
		code = soap.Server
		detail.Children = append(detail.Children, soap.Element{Name: own("code"), Text: r.code.String()})
	}
	return soap.Fault{Code: code, Reason: r.reason, Detail: []soap.Element{detail}}
}

// codes are the errors of a store that faults stand for.
var codes = map[string]ctxstore.Code{
	faultUnknown: ctxstore.NotFound, faultVersion: ctxstore.Conflict, faultInvalid: ctxstore.Invalid,
	faultNotGiven: ctxstore.Permission, faultState: ctxstore.Permission, faultTimeout: ctxstore.Invalid,
	faultParent: ctxstore.NotFound, faultChild: ctxstore.Permission,
}

// errorOf is the error of a store for a fault of the service at an address.
func errorOf(f soap.Fault, uri, at string) error {
	e := &ctxstore.Error{Code: ctxstore.Unavailable, URI: uri, At: at, Err: errors.New(f.Reason)}
	for _, d := range f.Detail {
		if d.Name.Space != xmlns.WSContext {
			continue
		}
		if code, known := codes[d.Name.Local]; known {
			e.Code = code
		}
		if c := d.Child(own("code")); c != nil {
			for _, code := range general {
				if code.String() == c.Text {
					e.Code = code
				}
			}
		}
	}
	if e.Code == ctxstore.NotFound && e.URI == uri {
		e.Err = nil
	}
	return e
}
