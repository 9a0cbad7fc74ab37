// Package gocode writes Go for a service that a WSDL describes: structs of its messages, a client,
// and a handler that serves it.
package gocode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// GoOptions say what is generated.
type GoOptions struct {
	// Package is the name of the package.
	Package string
	// Binding limits operations to those of a binding or port; empty: those of all, but of several
	// bindings of one portType the first.
	Binding string
	// Operations are the names of those that are generated; none: all.
	Operations []string
}

// GoProgram is what was generated.
type GoProgram struct {
	// Source is the file, as gofmt has it; nil: there is no operation that can be generated.
	Source []byte
	// Generated are the operations in it.
	Generated []*wsdl.Operation
	Refused   []RefusedOperation
	// Notes are what of the messages is not carried.
	Notes []Lack
}

// RefusedOperation is an operation that was not generated.
type RefusedOperation struct {
	Operation *wsdl.Operation
	Reasons   []Lack
}

// String is the operation, with the reasons.
func (r RefusedOperation) String() string {
	var reasons []string
	for _, l := range r.Reasons {
		reasons = append(reasons, l.String())
	}
	return r.Operation.Name + " was not generated: " + strings.Join(reasons, "; ")
}

// goOperation is one that is generated.
type goOperation struct {
	*wsdl.Operation
	name, variable string
	// key is what tells its requests from those of others: their element, or their action.
	key           string
	unserved      bool // nothing does
	input, output *structType
	faults        []*structType
}

// service are the operations of a portType.
type service struct {
	portType                         xsd.QName
	place                            xsd.Position
	location                         string
	client, iface, dial, handle, url string
	operations                       []*goOperation
}

// fileGenerator is the state of generating a file.
type fileGenerator struct {
	d        *wsdl.ServiceDescription
	opt      GoOptions
	b        builder
	out      *GoProgram
	names    nameScope
	services []*service
	enums    []*enumType
	faults   bool // some operations have details of faults
	structs  []*structType
}

// Generate writes the code for a description; that is to have been loaded with
// [wsdl.SourceOptions].Texts for comments.
func Generate(d *wsdl.ServiceDescription, opt GoOptions) *GoProgram {
	g := &fileGenerator{d: d, opt: opt, out: &GoProgram{}, names: nameScope{}, b: builder{
		types: map[*xsd.TypeDef]*structType{}, roots: map[*xsd.ElementDecl]*structType{},
		enums: map[*xsd.Simple]*enumType{},
	}}
	g.take()
	g.b.resolve()
	g.choose()
	if len(g.services) == 0 {
		return g.out
	}
	g.name()
	w := &goFile{docs: d.Documentation()}
	g.write(w)
	g.out.Source = []byte(w.String())
	return g.out
}

// take makes the structs of all operations that are asked for.
func (g *fileGenerator) take() {
	met := map[xsd.Position]bool{}
	for _, op := range g.wanted() {
		if len(op.Problems) == 0 && met[op.Declared] {
			continue // of another binding
		}
		met[op.Declared] = true
		o := &goOperation{Operation: op}
		if reasons := g.messages(o); len(reasons) > 0 {
			g.out.Refused = append(g.out.Refused, RefusedOperation{op, reasons})
			continue
		}
		s := g.service(op)
		s.operations = append(s.operations, o)
	}
}

// wanted are the operations that are asked for.
func (g *fileGenerator) wanted() (list []*wsdl.Operation) {
	for _, op := range g.d.Operations {
		if len(g.opt.Operations) > 0 && !slices.Contains(g.opt.Operations, op.Name) {
			continue
		}
		if g.opt.Binding != "" && !slices.Contains(g.d.Named(op.Name, g.opt.Binding), op) {
			continue
		}
		list = append(list, op)
	}
	return list
}

func (g *fileGenerator) service(op *wsdl.Operation) *service {
	for _, s := range g.services {
		if s.portType == op.PortType {
			return s
		}
	}
	s := &service{portType: op.PortType, place: op.PortTypePlace, location: g.d.LocationOf(op)}
	g.services = append(g.services, s)
	return s
}

// messages makes the structs of an operation, or says why there are none.
func (g *fileGenerator) messages(o *goOperation) (reasons []Lack) {
	for _, p := range o.Problems {
		reasons = append(reasons, Lack{p.Place, p.What})
	}
	refuse := func(what string) { reasons = append(reasons, Lack{o.Place, what}) }
	switch {
	case len(reasons) > 0:
		return reasons
	case o.Encoded:
		refuse("its messages are in SOAP's encoding")
		return reasons
	case o.Input == nil:
		refuse("it has no request: the service begins it")
		return reasons
	}
	for _, m := range []struct {
		parts *wsdl.EnvelopeParts
		into  **structType
		what  string
	}{{o.Input, &o.input, "request"}, {o.Output, &o.output, "reply"}} {
		switch {
		case m.parts == nil:
		case len(m.parts.Body) == 0 && m.parts.BodyType == nil:
			refuse("its " + m.what + " has nothing in Body")
		case len(m.parts.Attached) > 0:
			refuse("its " + m.what + " has parts beside the envelope")
		case m.parts.BodyType != nil:
			refuse("its " + m.what + " is a type, with no element around it")
		case len(m.parts.Body) > 1:
			refuse("its " + m.what + " has several elements in Body")
		case len(m.parts.Body) == 1:
			*m.into = g.b.root(m.parts.Body[0])
		}
	}
	for _, f := range o.Faults {
		if f.Detail != nil {
			o.faults = append(o.faults, g.b.root(f.Detail))
		}
	}
	return reasons
}

// choose refuses operations whose messages cannot be carried.
func (g *fileGenerator) choose() {
	for _, s := range g.services {
		s.operations = slices.DeleteFunc(s.operations, func(o *goOperation) bool {
			var reasons []Lack
			for _, m := range []*structType{o.input, o.output} {
				if m != nil {
					reasons = append(reasons, m.wrong...)
				}
			}
			if len(reasons) > 0 {
				g.out.Refused = append(g.out.Refused, RefusedOperation{o.Operation, reasons})
				return true
			}
			g.out.Generated = append(g.out.Generated, o.Operation)
			return false
		})
	}
	g.services = slices.DeleteFunc(g.services, func(s *service) bool { return len(s.operations) == 0 })
}

// keys finds what tells the requests of operations apart.
func (g *fileGenerator) keys(s *service) {
	elements := map[string]int{}
	for _, o := range s.operations {
		elements[o.input.element.Local]++
	}
	taken := map[string]bool{}
	for _, o := range s.operations {
		if o.key = o.input.element.Local; elements[o.key] > 1 && o.Action != "" {
			o.key = o.Action
		}
		if taken[o.key] {
			g.out.Notes = append(g.out.Notes, Lack{o.Place, "what tells requests of " + o.Name +
				" from those of others: the handler does not serve it"})
			o.unserved = true
		}
		taken[o.key] = true
	}
}

// reach takes a struct, and those that it has, into the file.
func (g *fileGenerator) reach(roots ...*structType) {
	for todo := roots; len(todo) > 0; todo = todo[1:] {
		s := todo[0]
		if s == nil || s.reached {
			continue
		}
		s.reached = true
		g.structs = append(g.structs, s)
		for _, f := range s.fields {
			if f.struc != nil {
				todo = append(todo, f.struc)
			}
		}
	}
}

// name names all that is in the file. The names of services come first, then those of messages,
// then those of types.
func (g *fileGenerator) name() {
	g.names.take("Detail")
	g.names.take("Fault")
	for _, s := range g.services {
		before := ""
		if len(g.services) > 1 {
			before = exported(s.portType.Local)
		}
		s.client, s.iface = g.names.take(before+"Client"), g.names.take(before+"Service")
		s.dial, s.handle = g.names.take("New"+s.client), g.names.take("New"+before+"Handler")
		s.url = g.names.take(before + "Location")
		methods := nameScope{}
		for _, o := range s.operations {
			o.name = methods.take(exported(o.Name))
			o.variable = g.names.take("operation" + before + o.name)
		}
		g.keys(s)
	}
	var inputs, rest []*structType
	for _, s := range g.services {
		for _, o := range s.operations {
			inputs = append(inputs, o.input, o.output)
			o.faults = slices.DeleteFunc(o.faults, func(s *structType) bool {
				if len(s.wrong) > 0 {
					what := fmt.Sprintf("%s in faults of %s: %s", s.element.Local, o.Name, s.wrong[0].What)
					g.out.Notes = append(g.out.Notes, Lack{s.place, what})
				}
				return len(s.wrong) > 0
			})
			rest = append(rest, o.faults...)
			g.faults = g.faults || len(o.faults) > 0
		}
	}
	g.reach(append(inputs, rest...)...)
	for _, s := range g.structs {
		g.nameStruct(s)
	}
	for _, s := range g.structs {
		for _, f := range s.fields {
			if f.enum != nil && f.enum.name == "" {
				f.enum.name = g.names.take(f.enum.wanted...)
				g.enums = append(g.enums, f.enum)
			}
		}
	}
	for _, e := range g.enums {
		for _, v := range e.values {
			e.constants = append(e.constants, g.names.take(e.constant(v)))
		}
	}
	slices.SortStableFunc(g.out.Notes, func(a, b Lack) int {
		return cmp.Or(cmp.Compare(a.Place.Location, b.Place.Location), cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column), cmp.Compare(a.What, b.What))
	})
	g.out.Notes = slices.Compact(g.out.Notes)
}

// roleNames are behind the names of fields that would be the same.
var roleNames = map[fieldRole]string{elementField: "Element", attributeField: "Attr"}

func (g *fileGenerator) nameStruct(s *structType) {
	wanted := s.wanted
	if s.in != nil {
		wanted = append(slices.Clip(wanted), s.in.name+wanted[0])
	}
	s.name = g.names.take(wanted...)
	fields := nameScope{"XMLName": true}
	for _, role := range []fieldRole{textField, elementField, attributeField} {
		for _, f := range s.fields {
			name := exported(f.xml.Local)
			switch {
			case f.role != role:
			case role == textField:
				f.name = fields.take("Value")
			default:
				f.name = fields.take(name, name+roleNames[role])
			}
		}
	}
	g.out.Notes = append(g.out.Notes, s.notes...)
}
