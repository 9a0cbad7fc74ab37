package wsdl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// operationCompiler is the state of compiling one operation.
type operationCompiler struct {
	c      *compiler
	o      *Operation
	target string
	reach  xsd.Reach
}

func (w *operationCompiler) fail(at *xsd.DocumentNode, format string, args ...any) {
	w.o.Problems = append(w.o.Problems, &xsd.Problem{Place: at.Place, What: fmt.Sprintf(format, args...)})
}

func (w *operationCompiler) compile(bound *xsd.DocumentNode, port *qualified) {
	abstract := w.abstract(bound, port)
	if abstract == nil {
		w.fail(bound, "portType %s has no operation %s", port.node.Attr("name"), w.o.Name)
		p := w.o.Problems[len(w.o.Problems)-1]
		p.Kind, p.Component = xsd.NoOperation, w.o.Name
		p.Name = xsd.QName{Space: port.target, Local: port.node.Attr("name")}
		return
	}
	w.o.PortType, w.o.PortTypePlace = xsd.QName{Space: port.target, Local: port.node.Attr("name")}, port.node.Place
	w.o.Declared = abstract.Place
	w.o.Input = w.message(bound.First(name("input")), abstract.First(name("input")), w.o.Name)
	w.o.Output = w.message(bound.First(name("output")), abstract.First(name("output")), w.o.Name+"Response")
	for _, n := range abstract.All(name("fault")) {
		w.fault(n)
	}
	w.o.Problems = append(w.o.Problems, w.reach.Problems...)
}

// abstract finds the operation of the portType; of several with one name, the one whose input and
// output have the names that the binding gives.
func (w *operationCompiler) abstract(bound *xsd.DocumentNode, port *qualified) *xsd.DocumentNode {
	found := w.c.operationsOf(port.node)[w.o.Name]
	if len(found) == 0 {
		return nil
	}
	for _, n := range found {
		if sameName(bound.First(name("input")), n.First(name("input"))) &&
			sameName(bound.First(name("output")), n.First(name("output"))) {
			return n
		}
	}
	return found[0]
}

func sameName(bound, abstract *xsd.DocumentNode) bool {
	return bound == nil || abstract == nil || bound.Attr("name") == abstract.Attr("name")
}

// message compiles an input or output; nil if there is none.
func (w *operationCompiler) message(bound, abstract *xsd.DocumentNode, wrapper string) *EnvelopeParts {
	if abstract == nil {
		return nil
	}
	g, wrong := w.c.find(abstract, "message", abstract.Attr("message"))
	if wrong != nil {
		w.o.Problems = append(w.o.Problems, wrong)
		return nil
	}
	m := &EnvelopeParts{}
	parts := g.node.All(name("part"))
	body, headers := w.placed(m, bound)
	if body != nil {
		m.Encoded = body.Attr("use") == "encoded"
		w.o.Encoded = w.o.Encoded || m.Encoded
		if list, ok := body.Get("parts"); ok {
			for name := range strings.FieldsSeq(list) {
				if len(pick(parts, []string{name})) == 0 {
					w.fail(body, "message %s has no part %s", abstract.Attr("message"), name)
				}
			}
			parts = pick(parts, strings.Fields(list))
		}
	}
	for _, h := range headers {
		parts = w.header(m, h, g, parts)
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *xsd.DocumentNode) bool {
		return slices.Contains(m.Attached, p.Attr("name"))
	})
	if w.o.Style == "rpc" {
		w.rpc(m, body, parts, wrapper)
	} else {
		w.document(m, parts)
	}
	return m
}

// placed finds where the parts go: soap:body and soap:header, also inside the first part of MIME.
func (w *operationCompiler) placed(
	m *EnvelopeParts,
	bound *xsd.DocumentNode,
) (body *xsd.DocumentNode, headers []*xsd.DocumentNode) {
	if bound == nil {
		return nil, nil
	}
	places := []*xsd.DocumentNode{bound}
	if related := bound.First(xsd.QName{Space: xmlns.WSDLMIME, Local: "multipartRelated"}); related != nil {
		for _, part := range related.Children {
			places = append(places, part)
			if content := part.First(xsd.QName{Space: xmlns.WSDLMIME, Local: "content"}); content != nil {
				m.Attached = append(m.Attached, content.Attr("part"))
			}
		}
	}
	for _, at := range places {
		for _, n := range at.Children {
			switch {
			case soapBindings[n.Name.Space] == 0:
				if n.Attr("required") == "true" && n.Name.Space != xmlns.WSDLMIME {
					w.fail(n, "the extension %s is required", n.Name)
				}
			case n.Name.Local == "body":
				body = n
			case n.Name.Local == "header":
				headers = append(headers, n)
			}
		}
	}
	return body, headers
}

func pick(parts []*xsd.DocumentNode, names []string) (list []*xsd.DocumentNode) {
	for _, p := range parts {
		if slices.Contains(names, p.Attr("name")) {
			list = append(list, p)
		}
	}
	return list
}

// header compiles a soap:header, and returns the parts that are left for the body. One that refers
// to what is not there is no reason to refuse the operation: header blocks may always be there.
func (w *operationCompiler) header(
	m *EnvelopeParts,
	h *xsd.DocumentNode,
	of *qualified,
	parts []*xsd.DocumentNode,
) []*xsd.DocumentNode {
	g, wrong := w.c.find(h, "message", h.Attr("message"))
	if wrong != nil {
		w.c.problem(h, "header of %s: %s", w.o.Name, wrong.What)
		return parts
	}
	named := pick(g.node.All(name("part")), []string{h.Attr("part")})
	if len(named) == 0 {
		w.c.problem(h, "header of %s: message %s has no part %s", w.o.Name, h.Attr("message"), h.Attr("part"))
		return parts
	}
	if e := w.part(named[0]); e != nil {
		m.Headers = append(m.Headers, e)
	}
	if g != of {
		return parts
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p *xsd.DocumentNode) bool { return p == named[0] })
}

// document compiles the body of a message in document style: one element for each part. A single
// part that names a type is the content of Body itself; where there are several, each of a type is
// an element of the part's name, as servers have it.
func (w *operationCompiler) document(m *EnvelopeParts, parts []*xsd.DocumentNode) {
	for _, p := range parts {
		if _, ok := p.Get("element"); !ok && len(parts) == 1 {
			m.BodyType = w.partType(p)
			return
		}
		if e := w.part(p); e != nil {
			m.Body = append(m.Body, e)
		}
	}
}

// rpc compiles the body of a message in rpc style: an element around the parts.
func (w *operationCompiler) rpc(m *EnvelopeParts, body *xsd.DocumentNode, parts []*xsd.DocumentNode, wrapper string) {
	e := &xsd.ElementDecl{Name: xsd.QName{Local: wrapper}, Place: w.o.Place}
	if body != nil {
		e.Name.Space = body.Attr("namespace")
	}
	all := &xsd.Particle{Kind: xsd.Sequence, Min: 1, Max: 1}
	for _, p := range parts {
		part := w.part(p)
		if part == nil {
			continue
		}
		if _, typed := p.Get("type"); typed {
			part = &xsd.ElementDecl{
				Name:     xsd.QName{Local: p.Attr("name")},
				Place:    p.Place,
				Type:     part.Type,
				Nillable: true,
			}
		}
		all.Parts = append(all.Parts, xsd.Once(part))
	}
	e.Type = &xsd.TypeDef{Place: w.o.Place, Particle: all}
	m.Body = []*xsd.ElementDecl{e}
}

// part compiles a part; nil if it cannot be. One of a type is an element of the part's name.
func (w *operationCompiler) part(p *xsd.DocumentNode) *xsd.ElementDecl {
	text, ok := p.Get("element")
	if !ok {
		t := w.partType(p)
		return &xsd.ElementDecl{Name: xsd.QName{Local: p.Attr("name")}, Place: p.Place, Type: t}
	}
	ref, wrong := p.Reference(text)
	if wrong != nil {
		w.o.Problems = append(w.o.Problems, wrong)
		return nil
	}
	e := w.c.l.Set.Element(ref)
	if e == nil {
		w.o.Problems = append(w.o.Problems, w.c.l.Set.Absent(p, "element", ref))
		return nil
	}
	w.reach.Element(e)
	return e
}

func (w *operationCompiler) partType(p *xsd.DocumentNode) *xsd.TypeDef {
	ref, wrong := p.Reference(p.Attr("type"))
	if ref.Local == "" {
		w.fail(p, "part %s has neither an element nor a type", p.Attr("name"))
		return nil
	}
	if wrong != nil {
		w.o.Problems = append(w.o.Problems, wrong)
		return nil
	}
	t := w.c.l.Set.Type(ref)
	if t == nil {
		w.o.Problems = append(w.o.Problems, w.c.l.Set.Absent(p, "type", ref))
		return nil
	}
	w.reach.Type(t)
	return t
}

// fault compiles a fault. One whose message is not there is no reason to refuse the operation: the
// detail of a fault is open.
func (w *operationCompiler) fault(n *xsd.DocumentNode) {
	g, wrong := w.c.find(n, "message", n.Attr("message"))
	if wrong != nil {
		w.c.problem(n, "fault of %s: %s", w.o.Name, wrong.What)
		return
	}
	for _, p := range g.node.All(name("part")) {
		w.o.Faults = append(w.o.Faults, FaultMessage{n.Attr("name"), w.part(p)})
	}
}
