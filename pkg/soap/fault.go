package soap

import "strings"

// FaultCode is who is at fault, in one set of words for both versions.
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
	// DataEncodingUnknown: values are encoded in a way that is not served (1.2; in 1.1 it is
	// written as Client).
	DataEncodingUnknown
)

type faultName struct{ v11, v12 string }

var faultCodes = [...]faultName{
	OtherFault:      {"", ""},
	Client:          {"Client", "Sender"},
	Server:          {"Server", "Receiver"},
	MustUnderstand:  {"MustUnderstand", "MustUnderstand"},
	VersionMismatch: {"VersionMismatch", "VersionMismatch"},

	DataEncodingUnknown: {"Client", "DataEncodingUnknown"},
}

func (c FaultCode) local(v Version) string {
	if int(c) >= len(faultCodes) || c == OtherFault {
		c = Server
	}
	return faultCodes[c].in(v)
}

func (n faultName) in(v Version) string {
	if v == V12 {
		return n.v12
	}
	return n.v11
}

// Fault is a SOAP fault of either version.
type Fault struct {
	// Code is who is at fault. OtherFault is written as Server.
	Code FaultCode
	// Subcode is a refinement: the part after the dot of a 1.1 code, or the local name of the first
	// Subcode of 1.2.
	Subcode string
	// SubcodeSpace is the namespace of Subcode, where it has one. In SOAP 1.1 the two together then
	// replace Code, which is read as OtherFault.
	SubcodeSpace string
	// Reason is the text for people.
	Reason string
	// Actor is the URI of the node that was at fault (1.2: the role it acted in), empty for the
	// ultimate receiver; Node is the node's own URI (1.2).
	Actor, Node string
	// NotUnderstood names the header blocks that a MustUnderstand fault is about (1.2).
	NotUnderstood []Name
	// Supported are the versions that the node which found a VersionMismatch speaks, preferred
	// first (1.2).
	Supported []Version
	// Detail is additional content; only for faults that the Body caused.
	Detail []Element
}

// Error implements error, for services that fail with a fault, and for their clients.
func (f *Fault) Error() string {
	code := f.Code.local(V11)
	if f.Subcode != "" {
		code += "." + f.Subcode
	}
	return "fault: " + code + ": " + f.Reason
}

// BuildFault writes a whole envelope with the fault in it. None is taken as SOAP 1.1.
func BuildFault(v Version, f Fault) ([]byte, error) {
	if v == None {
		v = V11
	}
	return Build(f.Envelope(v))
}

// Envelope returns the message with the fault, in one of the versions.
func (f *Fault) Envelope(v Version) *Envelope {
	if v == V12 {
		return f.envelope12()
	}
	return f.envelope11()
}

func (f *Fault) envelope11() *Envelope {
	code := Element{Name: Name{"", "faultcode"}, Text: "soap:" + f.Code.local(V11)}
	switch {
	case f.SubcodeSpace != "":
		code.Attrs, code.Text = []Attr{{"xmlns:c", f.SubcodeSpace}}, "c:"+f.Subcode
	case f.Subcode != "":
		code.Text += "." + f.Subcode
	}
	fault := Element{
		Name:     Name{V11.Namespace(), "Fault"},
		Children: []Element{code, {Name: Name{"", "faultstring"}, Text: f.Reason}},
	}
	if f.Actor != "" {
		fault.Children = append(fault.Children, Element{Name: Name{"", "faultactor"}, Text: f.Actor})
	}
	if len(f.Detail) > 0 {
		fault.Children = append(fault.Children, Element{Name: Name{"", "detail"}, Children: f.Detail})
	}
	return &Envelope{Version: V11, Body: []Element{fault}}
}

func (f *Fault) envelope12() *Envelope {
	ns := V12.Namespace()
	el := func(local, text string, children ...Element) Element {
		return Element{Name: Name{ns, local}, Text: text, Children: children}
	}
	code := el("Code", "", el("Value", "soap:"+f.Code.local(V12)))
	if f.Subcode != "" {
		value := el("Value", f.Subcode)
		if f.SubcodeSpace != "" {
			value.Attrs, value.Text = []Attr{{"xmlns:c", f.SubcodeSpace}}, "c:"+f.Subcode
		}
		code.Children = append(code.Children, el("Subcode", "", value))
	}
	reason := el("Text", f.Reason)
	reason.Attrs = []Attr{{"xml:lang", "en"}}
	fault := el("Fault", "", code, el("Reason", "", reason))
	if f.Node != "" {
		fault.Children = append(fault.Children, el("Node", f.Node))
	}
	if f.Actor != "" {
		fault.Children = append(fault.Children, el("Role", f.Actor))
	}
	if len(f.Detail) > 0 {
		fault.Children = append(fault.Children, el("Detail", "", f.Detail...))
	}
	return &Envelope{Version: V12, Header: f.header12(), Body: []Element{fault}}
}

// header12 returns the header blocks that list what was not understood, or which versions are (SOAP
// 1.2 part 1, sections 5.4.7 and 5.4.8).
func (f *Fault) header12() (blocks []Element) {
	named := func(local string, n Name) Element {
		e := Element{Name: Name{V12.Namespace(), local}, Attrs: []Attr{{"qname", n.Local}}}
		if n.Space != "" {
			e.Attrs = []Attr{{"xmlns:q", n.Space}, {"qname", "q:" + n.Local}}
		}
		return e
	}
	for _, n := range f.NotUnderstood {
		blocks = append(blocks, named("NotUnderstood", n))
	}
	if len(f.Supported) > 0 {
		upgrade := Element{Name: Name{V12.Namespace(), "Upgrade"}}
		for _, v := range f.Supported {
			upgrade.Children = append(upgrade.Children, named("SupportedEnvelope", Name{v.Namespace(), "Envelope"}))
		}
		blocks = append(blocks, upgrade)
	}
	return blocks
}

// Fault reads the fault of an envelope; ok is false when its Body contains none.
func (e *Envelope) Fault() (f Fault, ok bool) {
	ns := e.Version.Namespace()
	if len(e.Body) == 0 || e.Body[0].Name != (Name{ns, "Fault"}) {
		return Fault{}, false
	}
	el := &e.Body[0]
	if e.Version == V12 {
		f.read12(el, ns)
	} else {
		f.read11(el, ns)
	}
	f.NotUnderstood = e.notUnderstood
	for _, n := range e.supported {
		if v := versionOf(n.Space); v != None {
			f.Supported = append(f.Supported, v)
		}
	}
	return f, true
}

func (f *Fault) read11(el *Element, ns string) {
	code := el.Child(Name{"", "faultcode"})
	f.Reason = textOf(el.Child(Name{"", "faultstring"}))
	f.Actor = textOf(el.Child(Name{"", "faultactor"}))
	if d := el.Child(Name{"", "detail"}); d != nil {
		f.Detail = d.Children
	}
	if code != nil && code.qname.Space != "" && code.qname.Space != ns {
		f.SubcodeSpace, f.Subcode = code.qname.Space, code.qname.Local
		return
	}
	_, local := cutPrefix(textOf(code))
	local, f.Subcode, _ = strings.Cut(local, ".")
	f.Code = faultCodeOf(V11, local)
}

func (f *Fault) read12(el *Element, ns string) {
	if c := el.Child(Name{ns, "Code"}); c != nil {
		_, local := cutPrefix(textOf(c.Child(Name{ns, "Value"})))
		f.Code = faultCodeOf(V12, local)
		if sub := c.Child(Name{ns, "Subcode"}); sub != nil {
			value := sub.Child(Name{ns, "Value"})
			_, f.Subcode = cutPrefix(textOf(value))
			if value != nil {
				f.SubcodeSpace = value.qname.Space
			}
		}
	}
	if r := el.Child(Name{ns, "Reason"}); r != nil {
		f.Reason = textOf(r.Child(Name{ns, "Text"}))
	}
	f.Node, f.Actor = textOf(el.Child(Name{ns, "Node"})), textOf(el.Child(Name{ns, "Role"}))
	if d := el.Child(Name{ns, "Detail"}); d != nil {
		f.Detail = d.Children
	}
}

func faultCodeOf(v Version, local string) FaultCode {
	for c := Client; int(c) < len(faultCodes); c++ {
		if faultCodes[c].in(v) == local {
			return c
		}
	}
	return OtherFault
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
