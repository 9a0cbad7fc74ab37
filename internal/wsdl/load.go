package wsdl

import (
	"context"
	"fmt"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Load compiles a WSDL or XSD at a path or an http or https URL, with all that it imports. An XSD
// has no operations: its Elements are all that it declares. An error means that there is no
// description at all; problems of parts are in the result.
func Load(ctx context.Context, location string, opt SourceOptions) (*ServiceDescription, error) {
	catalog, err := readCatalog(opt.Catalog)
	if err != nil {
		return nil, err
	}
	return load(ctx, &documentSource{opt: opt, root: location, catalog: catalog}, location)
}

// Parse is [Load] of a text, which imports nothing but standards.
func Parse(ctx context.Context, text []byte) (*ServiceDescription, error) {
	const here = "description"
	return load(ctx, &documentSource{root: here, text: text, catalog: &catalog{}, beside: map[string][]string{}}, here)
}

func load(ctx context.Context, s *documentSource, location string) (*ServiceDescription, error) {
	catalog := s.catalog
	l := &xsd.Loader{Set: xsd.NewSet(), Open: s.open, Locate: catalog.locate, Known: s.known}
	root, err := l.Document(ctx, location)
	if err != nil {
		return nil, err
	}
	switch root.Name {
	case definitionsName:
		d := compile(ctx, l, root, s.opt)
		d.Problems, d.set, d.texts = append(d.Problems, l.Set.Problems...), l.Set, s.texts
		d.Problems = append(d.Problems, l.Set.TypeProblems(d.problems())...)
		return d, nil
	case schemaName:
		d := loadSchema(ctx, l, root)
		d.set = l.Set
		return d, nil
	case xsd.QName{Space: wsdl20, Local: "description"}:
		return nil, &xsd.Problem{Place: root.Place, What: "this is WSDL 2.0, which is not supported: the service " +
			"may have a description in WSDL 1.1, too"}
	}
	what := fmt.Sprintf("%s is neither a WSDL nor an XML Schema", root.Name)
	switch root.Name.Local {
	case definitionsName.Local:
		what += ": definitions of a WSDL are in the namespace " + definitionsName.Space
	case schemaName.Local:
		what += ", which is in the namespace " + schemaName.Space
	}
	return nil, &xsd.Problem{Place: root.Place, What: what}
}

// problems are all that are in the description.
func (d *ServiceDescription) problems() map[*xsd.Problem]bool {
	all := map[*xsd.Problem]bool{}
	for _, p := range d.Problems {
		all[p] = true
	}
	for _, o := range d.Operations {
		for _, p := range o.Problems {
			all[p] = true
		}
	}
	return all
}

// wsdl20 is the namespace of WSDL 2.0 (W3C, 26 June 2007).
const wsdl20 = "http://www.w3.org/ns/wsdl"

// loadSchema compiles all global elements and types of a schema document: its own in their order,
// then those that it includes by name.
func loadSchema(ctx context.Context, l *xsd.Loader, root *xsd.DocumentNode) *ServiceDescription {
	l.Schema(ctx, root, "")
	l.Complete(ctx)
	d := &ServiceDescription{}
	target := root.Attr("targetNamespace")
	var names []xsd.QName
	own := map[xsd.QName]bool{}
	for _, n := range root.All(xsd.QName{Space: xmlns.XSD, Local: "element"}) {
		name := xsd.QName{Space: target, Local: n.Attr("name")}
		names = append(names, name)
		own[name] = true
	}
	for _, name := range l.Set.Elements() {
		if name.Space == target && !own[name] {
			names = append(names, name)
		}
	}
	var all xsd.Reach
	for _, name := range names {
		e := l.Set.Element(name)
		var own xsd.Reach
		own.Element(e)
		all.Element(e)
		d.Elements = append(d.Elements, Declared{Element: e, Problems: own.Problems})
	}
	for _, name := range l.Set.Types() {
		if name.Space == target {
			all.Type(l.Set.Type(name))
		}
	}
	d.Problems = append(l.Set.Problems, all.Problems...)
	return d
}

// Declared is a global element of a schema.
type Declared struct {
	Element *xsd.ElementDecl
	// Headers are the header blocks that messages with it may have, where the schema declares some.
	Headers  []*xsd.ElementDecl
	Problems []*xsd.Problem
}

// Contents is what an envelope with the element contains.
func (d *Declared) Contents() *xsd.Contents {
	return &xsd.Contents{Body: []*xsd.ElementDecl{d.Element}, Headers: d.Headers}
}
