package soap

import "strings"

// FaultCode says who is at fault, in one set of words for both versions.
type FaultCode uint8

const (
	// OtherFault is a code that is none of those below.
	OtherFault FaultCode = iota
	// Client: the message was at fault (1.2: Sender).
	Client
	// Server: the service was at fault (1.2: Receiver).
	Server
	// MustUnderstand: a mandatory header block was not understood.
	MustUnderstand
	// VersionMismatch: the envelope's version is not served.
	VersionMismatch
)

var faultCodes = [...]struct{ v11, v12 string }{
	OtherFault:      {"", ""},
	Client:          {"Client", "Sender"},
	Server:          {"Server", "Receiver"},
	MustUnderstand:  {"MustUnderstand", "MustUnderstand"},
	VersionMismatch: {"VersionMismatch", "VersionMismatch"},
}

func (c FaultCode) local(v Version) string {
	if int(c) >= len(faultCodes) || c == OtherFault {
		c = Server
	}
	if v == V12 {
		return faultCodes[c].v12
	}
	return faultCodes[c].v11
}

// Fault is a SOAP fault of either version.
type Fault struct {
	// Code is who is at fault. A fault of OtherFault is written as Server.
	Code FaultCode
	// Subcode is a refinement: what follows the dot of a 1.1 code, or the local name of the first Subcode of 1.2. It is read, not written.
	Subcode string
	// Reason is for people.
	Reason string
	// Detail is what the fault carries besides; only for faults that the Body caused.
	Detail []Element
}

// BuildFault writes a whole envelope with the fault in it. None is taken as SOAP 1.1.
func BuildFault(v Version, f Fault) ([]byte, error) {
	if v == None {
		v = V11
	}
	ns := v.Namespace()
	fault := Element{Name: Name{ns, "Fault"}}
	code := "soap:" + f.Code.local(v)
	if v == V12 {
		fault.Children = []Element{
			{Name: Name{ns, "Code"}, Children: []Element{{Name: Name{ns, "Value"}, Text: code}}},
			{Name: Name{ns, "Reason"}, Children: []Element{{Name: Name{ns, "Text"}, Attrs: []Attr{{"xml:lang", "en"}}, Text: f.Reason}}},
		}
		if len(f.Detail) > 0 {
			fault.Children = append(fault.Children, Element{Name: Name{ns, "Detail"}, Children: f.Detail})
		}
	} else {
		fault.Children = []Element{{Name: Name{"", "faultcode"}, Text: code}, {Name: Name{"", "faultstring"}, Text: f.Reason}}
		if len(f.Detail) > 0 {
			fault.Children = append(fault.Children, Element{Name: Name{"", "detail"}, Children: f.Detail})
		}
	}
	return Build(&Envelope{Version: v, Body: []Element{fault}})
}

// Fault reads the fault of an envelope; ok is false when its Body holds none.
func (e *Envelope) Fault() (f Fault, ok bool) {
	if len(e.Body) == 0 || e.Body[0].Name != (Name{e.Version.Namespace(), "Fault"}) {
		return Fault{}, false
	}
	el := &e.Body[0]
	ns := e.Version.Namespace()
	var code string
	if e.Version == V12 {
		if c := el.Child(Name{ns, "Code"}); c != nil {
			code = textOf(c.Child(Name{ns, "Value"}))
			if sub := c.Child(Name{ns, "Subcode"}); sub != nil {
				_, f.Subcode = cutPrefix(textOf(sub.Child(Name{ns, "Value"})))
			}
		}
		if r := el.Child(Name{ns, "Reason"}); r != nil {
			f.Reason = textOf(r.Child(Name{ns, "Text"}))
		}
		if d := el.Child(Name{ns, "Detail"}); d != nil {
			f.Detail = d.Children
		}
	} else {
		code = textOf(el.Child(Name{"", "faultcode"}))
		f.Reason = textOf(el.Child(Name{"", "faultstring"}))
		if d := el.Child(Name{"", "detail"}); d != nil {
			f.Detail = d.Children
		}
	}
	_, local := cutPrefix(code)
	if e.Version == V11 {
		local, f.Subcode, _ = strings.Cut(local, ".")
	}
	for c := Client; int(c) < len(faultCodes); c++ {
		if c.local(e.Version) == local {
			f.Code = c
		}
	}
	return f, true
}

func textOf(e *Element) string {
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.Text)
}

func cutPrefix(qname string) (prefix, local string) {
	if p, l, ok := strings.Cut(qname, ":"); ok {
		return p, l
	}
	return "", qname
}
