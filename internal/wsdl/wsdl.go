// Package wsdl compiles WSDL 1.1 (W3C note, 15 March 2001) with its bindings of SOAP 1.1 and 1.2 to
// operations, whose messages are elements and types of XML Schema.
package wsdl

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Operation is an operation of a binding.
type Operation struct {
	Name    string
	Binding xsd.QName
	Place   xsd.Position
	// PortType is what the binding binds, with its place, and Declared where that has the
	// operation.
	PortType      xsd.QName
	PortTypePlace xsd.Position
	Declared      xsd.Position
	// SOAP is 11 or 12.
	SOAP   int
	Action string
	// Style is document or rpc, Encoded that use is not literal.
	Style   string
	Encoded bool
	// Input and Output are nil where there is none: an operation without output is one-way.
	Input, Output *EnvelopeParts
	Faults        []FaultMessage
	// Problems are why the operation was refused; none: it compiled.
	Problems []*xsd.Problem
}

// EnvelopeParts is what the Body and Header of an envelope contain.
type EnvelopeParts struct {
	// Body has the elements in Body, in their order: of document style one or none, of rpc style
	// one, named after the operation, with an element without a namespace for each part. BodyType
	// is the content of Body itself, where a part of document style names a type.
	Body     []*xsd.ElementDecl
	BodyType *xsd.TypeDef
	Headers  []*xsd.ElementDecl
	// Encoded: values have the types and references of SOAP's encoding.
	Encoded bool
	// Attached are the parts that travel outside the envelope (MIME).
	Attached []string
}

// Contents is what an envelope with the message contains.
func (m *EnvelopeParts) Contents() *xsd.Contents {
	return &xsd.Contents{Body: m.Body, Type: m.BodyType, Headers: m.Headers, Encoded: m.Encoded}
}

// FaultMessage is a fault of an operation, with the element of its detail.
type FaultMessage struct {
	Name   string
	Detail *xsd.ElementDecl
}

// ServiceDescription is what a WSDL or XSD describes.
type ServiceDescription struct {
	Operations []*Operation
	// Elements are those of an XSD alone.
	Elements []Declared
	// Ports are those of services, as far as their bindings are of SOAP.
	Ports []ServicePort
	// Problems are those that belong to no operation.
	Problems []*xsd.Problem

	set   *xsd.Set
	texts []sourceText
}

var (
	definitionsName = name("definitions")
	typesName       = name("types")
	schemaName      = xsd.QName{Space: xmlns.XSD, Local: "schema"}
)

func name(local string) xsd.QName { return xsd.QName{Space: xmlns.WSDL, Local: local} }

// compiler is the state of compiling one WSDL and all that it imports.
type compiler struct {
	l        *xsd.Loader
	taken    map[*xsd.DocumentNode]bool
	globals  map[definition]*qualified
	bindings []*qualified
	// operations are those of portTypes, by name.
	operations map[*xsd.DocumentNode]map[string][]*xsd.DocumentNode
	services   []*xsd.DocumentNode
	messages   []*xsd.DocumentNode
	// annotations are the namespaces of elements that declare streams, and streams what those of
	// bindings do.
	annotations []string
	streams     map[*xsd.DocumentNode]*DeclaredStreams
	only        string // the operation that is wanted; empty: all
	out         ServiceDescription
}

type definition struct {
	kind string
	name xsd.QName
}

type qualified struct {
	node   *xsd.DocumentNode
	target string
}

// compile compiles the WSDL with this root element.
func compile(ctx context.Context, l *xsd.Loader, root *xsd.DocumentNode, opt SourceOptions) *ServiceDescription {
	c := &compiler{
		l: l, taken: map[*xsd.DocumentNode]bool{}, globals: map[definition]*qualified{},
		operations:  map[*xsd.DocumentNode]map[string][]*xsd.DocumentNode{},
		annotations: append(slices.Clip(opt.Annotations), xmlns.HHFRWSDL),
		streams:     map[*xsd.DocumentNode]*DeclaredStreams{}, only: opt.Operation,
	}
	l.Inline = map[string]bool{}
	c.document(ctx, root)
	l.Complete(ctx, c.messages...)
	for _, b := range c.bindings {
		c.binding(b)
	}
	for _, s := range c.services {
		c.ports(s)
	}
	return &c.out
}

func (c *compiler) problem(at *xsd.DocumentNode, format string, args ...any) {
	c.out.Problems = append(c.out.Problems, &xsd.Problem{Place: at.Place, What: fmt.Sprintf(format, args...)})
}

// document takes the components and schemas of a document, and of those that it imports.
func (c *compiler) document(ctx context.Context, root *xsd.DocumentNode) {
	if c.taken[root] {
		return
	}
	c.taken[root] = true
	target := root.Attr("targetNamespace")
	for _, n := range root.All(name("import")) {
		c.imported(ctx, n)
	}
	c.types(ctx, root)
	for _, n := range root.Children {
		if n.Name.Space != xmlns.WSDL {
			continue
		}
		switch n.Name.Local {
		case "service":
			c.services = append(c.services, n)
		case "message", "portType", "binding":
			g := &qualified{n, target}
			key := definition{n.Name.Local, xsd.QName{Space: target, Local: n.Attr("name")}}
			if c.globals[key] == nil {
				c.globals[key] = g
				switch n.Name.Local {
				case "binding":
					c.bindings = append(c.bindings, g)
				case "message":
					c.messages = append(c.messages, n)
				}
			}
		}
	}
}

// types takes the schemas in a document, which may use each other without an import, in any order.
func (c *compiler) types(ctx context.Context, root *xsd.DocumentNode) {
	var schemas, imports []*xsd.DocumentNode
	for _, types := range root.All(typesName) {
		for _, s := range types.Children {
			switch {
			case s.Name == schemaName:
				schemas = append(schemas, s)
				c.l.Inline[s.Attr("targetNamespace")] = true
			case s.Name == xsd.QName{Space: xmlns.XSD, Local: "import"}: // many tools read it
				imports = append(imports, s)
			case s.Name.Space == xmlns.XSD:
				c.problem(s, "%s outside a schema, which is not read", s.Name.Local)
			case s.Name.Local == schemaName.Local:
				c.problem(s, "a schema of %s, which is not XML Schema 1.0", s.Name.Space)
			}
		}
	}
	for _, s := range schemas {
		c.l.Schema(ctx, s, "")
	}
	for _, n := range imports {
		c.l.Import(ctx, n)
	}
}

func (c *compiler) imported(ctx context.Context, n *xsd.DocumentNode) {
	location := n.Attr("location")
	if location == "" {
		return // a schema of a namespace that is there
	}
	at, err := xsd.Resolve(n.Place.Location, location)
	if err != nil {
		c.problem(n, "import of %s: %v", location, err)
		return
	}
	root, err := c.l.Document(ctx, at)
	switch {
	case err != nil && c.known(ctx, n.Attr("namespace")):
	case err != nil:
		c.problem(n, "import of %s: %v", location, err)
	case root.Name == schemaName:
		c.l.Schema(ctx, root, "")
	case root.Name == definitionsName:
		c.document(ctx, root)
	default:
		c.problem(n, "import of %s, which is no WSDL but %s", location, root.Name)
	}
}

// known takes the WSDLs and schemas of a namespace that are known without their location; false:
// there are none.
func (c *compiler) known(ctx context.Context, space string) (some bool) {
	if c.l.Known == nil {
		return false
	}
	for _, location := range c.l.Known(space) {
		root, err := c.l.Document(ctx, location)
		switch {
		case err != nil || root.Attr("targetNamespace") != space:
		case root.Name == definitionsName:
			c.document(ctx, root)
			some = true
		case root.Name == schemaName:
			c.l.Schema(ctx, root, "")
			some = true
		}
	}
	return some
}

// find resolves a reference to a component.
func (c *compiler) find(n *xsd.DocumentNode, kind, text string) (*qualified, *xsd.Problem) {
	ref, wrong := n.Reference(text)
	if wrong != nil {
		return nil, wrong
	}
	if g := c.globals[definition{kind, ref}]; g != nil {
		return g, nil
	}
	return nil, xsd.Undeclared(n, kind, ref)
}

// soapBindings are the namespaces of SOAP bindings, with the version that each is of.
var soapBindings = map[string]int{xmlns.WSDLSOAP11: 11, xmlns.WSDLSOAP12: 12}

// extension finds a SOAP element in a binding.
func extension(n *xsd.DocumentNode, local string) (*xsd.DocumentNode, int) {
	for _, c := range n.Children {
		if v := soapBindings[c.Name.Space]; v != 0 && c.Name.Local == local {
			return c, v
		}
	}
	return nil, 0
}

// binding compiles the operations of a binding of SOAP; others have none.
func (c *compiler) binding(b *qualified) {
	soap, version := extension(b.node, "binding")
	if soap == nil {
		return
	}
	port, wrong := c.find(b.node, "portType", b.node.Attr("type"))
	for _, n := range b.node.All(name("operation")) {
		if c.only != "" && n.Attr("name") != c.only {
			continue
		}
		o := &Operation{
			Name: n.Attr("name"), Binding: xsd.QName{Space: b.target, Local: b.node.Attr("name")}, Place: n.Place,
			SOAP: version, Style: cmp.Or(soap.Attr("style"), "document"),
		}
		if own, _ := extension(n, "operation"); own != nil {
			o.Action = own.Attr("soapAction")
			o.Style = cmp.Or(own.Attr("style"), o.Style)
		}
		w := operationCompiler{c: c, o: o, target: b.target}
		if wrong != nil {
			o.Problems = append(o.Problems, wrong)
		} else {
			w.compile(n, port)
		}
		c.out.Operations = append(c.out.Operations, o)
	}
}

// operationsOf are the operations of a portType by name: a large one has thousands.
func (c *compiler) operationsOf(port *xsd.DocumentNode) map[string][]*xsd.DocumentNode {
	of := c.operations[port]
	if of == nil {
		of = map[string][]*xsd.DocumentNode{}
		c.operations[port] = of
		for _, n := range port.All(name("operation")) {
			of[n.Attr("name")] = append(of[n.Attr("name")], n)
		}
	}
	return of
}
