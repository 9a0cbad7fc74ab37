package soap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/beevik/etree"
)

// URIs of roles, besides the empty one of the ultimate receiver.
const (
	roleNext11     = "http://schemas.xmlsoap.org/soap/actor/next"
	roleNext12     = "http://www.w3.org/2003/05/soap-envelope/role/next"
	roleUltimate12 = "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver"
)

// forReceiver reports whether a header block is for the ultimate receiver of its message.
func (e *Element) forReceiver(v Version) bool {
	switch e.Role {
	case "":
		return true
	case roleUltimate12, roleNext12:
		return v == V12
	case roleNext11:
		return v == V11
	}
	return false
}

// Mandatory returns the fault that answers a message with header blocks that its ultimate receiver
// must understand, from a receiver that understands none (SOAP 1.1, section 4.2.3; SOAP 1.2 part 1,
// section 2.6). ok is false if there are no such blocks: the message may be processed.
func (e *Envelope) Mandatory() (f Fault, ok bool) {
	for i := range e.Header {
		if b := &e.Header[i]; b.MustUnderstand && b.forReceiver(e.Version) {
			f.NotUnderstood = append(f.NotUnderstood, b.Name)
		}
	}
	if len(f.NotUnderstood) == 0 {
		return Fault{}, false
	}
	f.Code = MustUnderstand
	f.Reason = fmt.Sprintf("header block %.200s must be understood", f.NotUnderstood[0])
	if e.Version != V12 {
		f.NotUnderstood = nil
	}
	return f, true
}

// blockAttrs are the attributes of header blocks that are read; of others not even the namespace is
// resolved.
var blockAttrs = []string{"mustUnderstand", "relay", "actor", "role"}

// block reads the attributes of an element as a header block.
func (e *Envelope) block(b *Element, t *etree.Element) {
	for _, a := range t.Attr {
		if a.Space == "" || !slices.Contains(blockAttrs, a.Key) || a.NamespaceURI() != e.Version.Namespace() {
			continue
		}
		value := strings.TrimSpace(a.Value)
		switch {
		case a.Key == "mustUnderstand":
			b.MustUnderstand = value == "1" || value == "true"
		case a.Key == "relay" && e.Version == V12:
			b.Relay = value == "1" || value == "true"
		case a.Key == "actor" && e.Version == V11, a.Key == "role" && e.Version == V12:
			b.Role = value
		}
	}
	if e.Version != V12 {
		return
	}
	switch b.Name {
	case Name{e.Version.Namespace(), "NotUnderstood"}:
		e.notUnderstood = append(e.notUnderstood, qnameAttr(t))
	case Name{e.Version.Namespace(), "Upgrade"}:
		for _, c := range t.ChildElements() {
			if c.Tag == "SupportedEnvelope" && c.NamespaceURI() == e.Version.Namespace() {
				e.supported = append(e.supported, qnameAttr(c))
			}
		}
	}
}

func qnameAttr(t *etree.Element) Name {
	value := strings.TrimSpace(t.SelectAttrValue("qname", ""))
	if n := resolve(t, value); n.Local != "" {
		return n
	}
	return Name{"", value}
}

// mark writes the attributes of a header block.
func (e *Element) mark(t *etree.Element, v Version) {
	if e.Role != "" {
		key := "soap:role"
		if v == V11 {
			key = "soap:actor"
		}
		t.CreateAttr(key, e.Role)
	}
	if e.MustUnderstand {
		t.CreateAttr("soap:mustUnderstand", "1")
	}
	if e.Relay && v == V12 {
		t.CreateAttr("soap:relay", "1")
	}
}
