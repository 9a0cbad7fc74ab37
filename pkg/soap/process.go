package soap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/beevik/etree"
)

// Roles that SOAP itself names. The ultimate receiver's is the empty one in both versions.
const (
	// RoleNext11 is that of every node that a SOAP 1.1 message reaches.
	RoleNext11 = "http://schemas.xmlsoap.org/soap/actor/next"
	// RoleNext12 is that of every node that a SOAP 1.2 message reaches.
	RoleNext12 = "http://www.w3.org/2003/05/soap-envelope/role/next"
	// RoleNone12 is that of nobody.
	RoleNone12 = "http://www.w3.org/2003/05/soap-envelope/role/none"
	// RoleUltimate12 means the same as no role.
	RoleUltimate12 = "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver"
)

// Node says in which roles an endpoint acts, and which header blocks it understands. The zero value is an ultimate receiver that understands none.
type Node struct {
	// Roles are URIs of roles that it acts in besides next and ultimate receiver.
	Roles []string
	// Intermediary: it is not the ultimate receiver.
	Intermediary bool
	// Understands reports whether header blocks of this name are understood; nil: none is. It may be called concurrently.
	Understands func(Name) bool
}

// Targets reports whether a header block of a message of the version is for the node.
func (n *Node) Targets(v Version, block *Element) bool {
	switch block.Role {
	case "":
		return !n.Intermediary
	case RoleUltimate12:
		return v == V12 && !n.Intermediary || slices.Contains(n.Roles, block.Role)
	case RoleNext11:
		return v == V11 || slices.Contains(n.Roles, block.Role)
	case RoleNext12:
		return v == V12 || slices.Contains(n.Roles, block.Role)
	case RoleNone12:
		return false
	}
	return slices.Contains(n.Roles, block.Role)
}

// Check looks at all header blocks that are for the node and must be understood. ok is false if there is one that is not: then nothing of the
// message may be processed, and f is the answer (SOAP 1.1, section 4.2.3; SOAP 1.2 part 1, section 2.6).
func (n *Node) Check(e *Envelope) (f Fault, ok bool) {
	for i := range e.Header {
		b := &e.Header[i]
		if b.MustUnderstand && n.Targets(e.Version, b) && (n.Understands == nil || !n.Understands(b.Name)) {
			f.NotUnderstood = append(f.NotUnderstood, b.Name)
		}
	}
	if len(f.NotUnderstood) == 0 {
		return Fault{}, true
	}
	f.Code = MustUnderstand
	f.Reason = fmt.Sprintf("header block %.200s must be understood", f.NotUnderstood[0])
	if e.Version != V12 {
		f.NotUnderstood = nil
	}
	return f, false
}

// FaultFor is the answer to a message that [Parse] refused.
func FaultFor(err error) Fault {
	var own *Error
	switch {
	case !errors.As(err, &own):
		return Fault{Code: Server, Reason: "the message could not be read"}
	case own.Fault != nil:
		return *own.Fault
	case own.Code == BadVersion:
		return Fault{Code: VersionMismatch, Reason: "SOAP 1.1 and 1.2 are spoken here", Supported: []Version{V12, V11}}
	}
	return Fault{Code: Client, Reason: own.Error()}
}

func (f *Fault) text() string {
	code := f.Code.local(V11)
	if f.Code == OtherFault && f.Subcode != "" {
		code = f.Subcode
	}
	return fmt.Sprintf("%s: %.200q", code, f.Reason)
}

// blockAttrs are the attributes of header blocks that are read; of others not even the namespace is looked up.
var blockAttrs = []string{"mustUnderstand", "relay", "actor", "role"}

// block reads what an element says as a header block.
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

// mark writes what a header block says besides its content.
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
