// Package typed makes shapes of messages that a WSDL or an XML Schema describes: types of
// values, what may be absent and what may repeat come from the description, the text around the
// values from the first message of a kind, by the learner's own rules.
//
// The own shape of a description of a message is made without any message. Who has the same
// description makes the same, so that the shape of a real message takes little where it stands on
// it (docs/wire-format.md, section 4.1.2).
package typed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxChecked is the longest message that is compared with its description, in bytes.
const maxChecked = 256 << 10

// Contract is a description of the messages of a service. It is safe for concurrent use.
type Contract struct {
	mu    sync.Mutex // of all below
	set   *wsdl.ServiceDescription
	kinds map[kindName]*kind
	// elsewhere are header blocks, and what faults have in their detail.
	elsewhere map[xsd.QName]*xsd.ElementDecl
	all       []*kind                   // in the order of their names
	uri       string                    // "": not yet made
	names     map[transit.OwnName]*kind // nil: the name of several
	types     map[*xsd.TypeDef]*contentModel
}

// kindName names a kind of messages: the version of SOAP and the first element in Body, or in the
// detail of a fault.
type kindName struct {
	envelope string
	body     xsd.QName
	fault    bool // body is the first element in its detail; none: of any other fault
}

// kind is one kind of messages.
type kind struct {
	kindName
	headers, in []*xsd.ElementDecl // what is in Header, in the order of their names, and in Body
	encoded     bool               // values are in SOAP's encoding, in all messages of the kind
	known       bool               // a message of the kind was met
	own         *shape.Shape       // nil: not yet made
}

// New indexes the messages of a description.
func New(d *wsdl.ServiceDescription) *Contract {
	s := &Contract{
		set:   d,
		kinds: map[kindName]*kind{}, elsewhere: map[xsd.QName]*xsd.ElementDecl{},
		names: map[transit.OwnName]*kind{},
		types: map[*xsd.TypeDef]*contentModel{},
	}
	for _, o := range d.Operations {
		envelope := map[int]string{11: xmlns.SOAP11, 12: xmlns.SOAP12}[o.SOAP]
		for _, m := range []*wsdl.EnvelopeParts{o.Input, o.Output} {
			if m != nil {
				s.message(envelope, m)
			}
		}
		s.faults(envelope, o.Faults)
	}
	for _, e := range d.Elements {
		s.add(kindName{xmlns.SOAP11, e.Element.Name, false}, []*xsd.ElementDecl{e.Element})
	}
	slices.SortFunc(s.all, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(a.envelope, b.envelope), compareNames(a.in[0].Name, b.in[0].Name),
			compareNames(a.body, b.body))
	})
	s.nameOwnShapes()
	return s
}

// URI names the description: it is the same for all descriptions of the same messages.
func (s *Contract) URI() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uri == "" {
		var elements []*xsd.ElementDecl
		h := sha256.New()
		for _, k := range s.all {
			if k.fault && k.body == (xsd.QName{}) {
				continue // of every service
			}
			fmt.Fprintf(h, "%s %d", k.envelope, len(k.in))
			if len(k.headers) > 0 {
				fmt.Fprintf(h, " header %d", len(k.headers))
			}
			if k.encoded {
				fmt.Fprint(h, " encoded")
			}
			h.Write([]byte{'\n'})
			elements = append(append(elements, k.in...), k.headers...)
		}
		h.Write(xsd.Canonical(elements...))
		s.uri = schema.URIPrefix + hex.EncodeToString(h.Sum(nil))
	}
	return s.uri
}

// StreamsAt returns the streams that the description declares for the service at a URL; nil: none
// are.
func (s *Contract) StreamsAt(u *url.URL) *wsdl.DeclaredStreams { return s.set.StreamsAt(u) }

// Hint is the beginning of the fingerprint, by which a hello names the description.
func (s *Contract) Hint() []byte {
	digits := strings.TrimPrefix(s.URI(), schema.URIPrefix)
	hint, _ := hex.DecodeString(digits[:2*hintLen]) // the digits are our own
	return hint
}

// hintLen is the length of a hint, in bytes (docs/wire-format.md, section 3).
const hintLen = 8

func compareNames(a, b xsd.QName) int {
	return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Local, b.Local))
}

// message adds an input or output.
func (s *Contract) message(envelope string, m *wsdl.EnvelopeParts) {
	for _, h := range m.Headers {
		s.elsewhere[h.Name] = h
	}
	if len(m.Body) > 0 {
		s.add(kindName{envelope, m.Body[0].Name, false}, m.Body).takes(m)
	}
}

// faults adds those that an operation declares, and any other.
func (s *Contract) faults(envelope string, list []wsdl.FaultMessage) {
	s.add(kindName{envelope, xsd.QName{}, true}, []*xsd.ElementDecl{wsdl.Fault(envelope, nil)})
	for _, f := range list {
		if f.Detail != nil {
			s.elsewhere[f.Detail.Name] = f.Detail
			s.add(kindName{envelope, f.Detail.Name, true}, []*xsd.ElementDecl{wsdl.Fault(envelope, f.Detail)})
		}
	}
}

func (s *Contract) add(name kindName, in []*xsd.ElementDecl) *kind {
	k := s.kinds[name]
	if k == nil {
		k = &kind{kindName: name, in: in}
		s.kinds[name] = k
		s.all = append(s.all, k)
	}
	return k
}

// takes adds what a message of the kind may have: header blocks, those of one name once. It is in
// SOAP's encoding if all are.
func (k *kind) takes(m *wsdl.EnvelopeParts) {
	k.encoded = m.Encoded && (k.encoded || !k.known)
	k.known = true
	for _, h := range m.Headers {
		at, known := slices.BinarySearchFunc(k.headers, h, func(a, b *xsd.ElementDecl) int {
			return compareNames(a.Name, b.Name)
		})
		if !known {
			k.headers = slices.Insert(k.headers, at, h)
		}
	}
}

// Describe returns what the description says of a message, or of the beginning of one; nil if it
// says nothing of what is in its Body.
func (s *Contract) Describe(message []byte, whole bool) *binary.Described {
	r := soap.Recognize(message)
	envelope := xmlns.SOAP11
	if r.Version == soap.V12 {
		envelope = xmlns.SOAP12
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &binary.Described{Declare: s.declare}
	k := s.kind(envelope, xsd.QName{Space: r.Operation.Space, Local: r.Operation.Local})
	if r.Fault {
		k = s.faultKind(envelope, inDetail(message))
	}
	switch {
	case k != nil:
		if own := k.ownShape(); own != nil {
			d.Own = s.named(transit.OwnNameOf(own.Fingerprint()))
		}
	case !r.Fault:
		return nil
	}
	d.Broken = whole && s.broken(message)
	return d
}

// kind finds a kind, in the other version of SOAP if it is not described in this one.
func (s *Contract) kind(envelope string, body xsd.QName) *kind {
	for _, e := range []string{envelope, xmlns.SOAP11, xmlns.SOAP12} {
		if k := s.kinds[kindName{e, body, false}]; k != nil {
			return k
		}
	}
	return nil
}

// faultKind finds the kind of a fault by what is in its detail: of what is not described, that of
// any fault.
func (s *Contract) faultKind(envelope string, detail xsd.QName) *kind {
	return cmp.Or(s.kinds[kindName{envelope, detail, true}], s.kinds[kindName{envelope, xsd.QName{}, true}])
}

// broken reports whether a message is not as it is described.
func (s *Contract) broken(message []byte) bool {
	if len(message) > maxChecked {
		return false
	}
	root, err := xsd.ParseMessage("", message)
	return err == nil && len(s.set.Check(root)) > 0
}

// Broken reports whether a message is not as it is described.
func (s *Contract) Broken(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken(message)
}

// ownShape makes the own shape of a kind where it is needed; nil: there can be none.
func (k *kind) ownShape() *shape.Shape {
	if k.own == nil {
		k.own, _ = own(k) // of the few that are beyond what a shape can be there is none
	}
	return k.own
}

// nameOwnShapes finds the kinds by the names of their own shapes. It keeps none of these: most are
// never used.
func (s *Contract) nameOwnShapes() {
	shapes := map[transit.OwnName]shape.Fingerprint{}
	for _, k := range s.all {
		made, err := own(k)
		if err != nil {
			continue
		}
		fp := made.Fingerprint()
		n := transit.OwnNameOf(fp)
		if other, again := shapes[n]; again && other != fp {
			s.names[n] = nil
			continue
		}
		shapes[n] = fp
		s.names[n] = k
	}
}

// Own returns the own shape of a name; nil if the description has none of it, or several.
func (s *Contract) Own(name transit.OwnName) *shape.Shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named(name)
}

func (s *Contract) named(name transit.OwnName) *shape.Shape {
	if k := s.names[name]; k != nil {
		return k.ownShape()
	}
	return nil
}

// declare widens what was learned from a message.
func (s *Contract) declare(f *learn.Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Declare(func(space, local string) learn.Declaration {
		if local == "Fault" && (space == xmlns.SOAP11 || space == xmlns.SOAP12) {
			return fault{s}
		}
		return s.global(xsd.QName{Space: space, Local: local})
	})
}

// global is what the description says of an element in Header or Body.
func (s *Contract) global(name xsd.QName) learn.Declaration {
	if k := s.kind(xmlns.SOAP11, name); k != nil {
		return declared{s, k.in[0].Type}
	}
	if e := s.elsewhere[name]; e != nil {
		return declared{s, e.Type}
	}
	if e := s.set.Element(name); e != nil {
		return declared{s, e.Type}
	}
	return nil
}
