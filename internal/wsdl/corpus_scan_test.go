package wsdl_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// findings are what the files of a folder declare, by a reader that has nothing in common with the
// compiler: that nothing declares a name is a reason for refusing an operation only if no file
// does.
type findings struct {
	declared map[string]string     // file by component and name, as "type {urn:a}b"
	inside   map[string][]xml.Name // groups that a group or attribute group refers to, by the same
	broken   map[string]string     // why a file is not well-formed
	roots    map[string]string     // roots that are of no description
}

// components are the elements that declare something for all of a namespace, by what problems name
// it.
var components = map[xml.Name]string{
	{Space: xmlns.XSD, Local: "element"}: "element", {Space: xmlns.XSD, Local: "attribute"}: "attribute",
	{Space: xmlns.XSD, Local: "simpleType"}: "type", {Space: xmlns.XSD, Local: "complexType"}: "type",
	{Space: xmlns.XSD, Local: "group"}: "group", {Space: xmlns.XSD, Local: "attributeGroup"}: "attribute group",
	{Space: xmlns.WSDL, Local: "message"}: "message", {Space: xmlns.WSDL, Local: "portType"}: "portType",
}

// scan reads all descriptions below a folder.
func scan(t *testing.T, dir string) *findings {
	f := &findings{map[string]string{}, map[string][]xml.Name{}, map[string]string{}, map[string]string{}}
	for _, path := range shared.Files(t, dir, func(p string) bool {
		return slices.Contains([]string{".wsdl", ".xsd"}, filepath.Ext(p))
	}) {
		one := &findings{map[string]string{}, map[string][]xml.Name{}, f.broken, f.roots}
		if err := one.read(path, shared.Read(t, path)); err != nil {
			f.broken[path] = err.Error()
			continue
		}
		maps.Copy(f.declared, one.declared)
		maps.Copy(f.inside, one.inside)
	}
	return f
}

// scanned is an element that is open.
type scanned struct {
	name   xml.Name
	target string // namespace of what it declares
	title  string // of the component that it declares, or is in
	spaces map[string]string
}

func attribute(e xml.StartElement, local string) string {
	for _, a := range e.Attr {
		if a.Name == (xml.Name{Local: local}) {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// read notes what a file declares. An error is that it is not well-formed.
func (f *findings) read(path string, text []byte) error {
	r := xml.NewDecoder(bytes.NewReader(text))
	r.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // names are in ASCII
	open := []scanned{{spaces: map[string]string{}}}
	for {
		token, err := r.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, f.element(path, open[len(open)-1], e, len(open) == 1))
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// element notes what an element declares or refers to.
func (f *findings) element(path string, in scanned, e xml.StartElement, root bool) scanned {
	at := scanned{name: e.Name, target: in.target, title: in.title, spaces: in.spaces}
	for _, a := range e.Attr {
		if prefix := a.Name.Local; a.Name.Space == "xmlns" || a.Name.Space == "" && prefix == "xmlns" {
			if a.Name.Space == "" {
				prefix = ""
			}
			at.spaces = maps.Clone(at.spaces)
			at.spaces[prefix] = a.Value
		}
	}
	schema := e.Name == xml.Name{Space: xmlns.XSD, Local: "schema"}
	definitions := e.Name == xml.Name{Space: xmlns.WSDL, Local: "definitions"}
	if schema || definitions {
		at.target = attribute(e, "targetNamespace")
	} else if root {
		f.roots[path] = fmt.Sprintf("{%s}%s", e.Name.Space, e.Name.Local)
	}
	what, name := components[e.Name], attribute(e, "name")
	switch {
	case in.name.Local == "schema" || in.name.Local == "definitions" || in.name.Local == "redefine":
		at.title = fmt.Sprintf("%s {%s}%s", what, in.target, name)
		f.declared[at.title] = path
	case in.name == xml.Name{Space: xmlns.WSDL, Local: "portType"} && e.Name.Local == "operation":
		f.declared[in.title+" "+name] = path
	case attribute(e, "ref") != "" && strings.HasSuffix(what, "roup"):
		prefix, local, found := strings.Cut(attribute(e, "ref"), ":")
		if !found {
			prefix, local = "", prefix
		}
		f.inside[in.title] = append(f.inside[in.title], xml.Name{Space: at.spaces[prefix], Local: local})
	}
	return at
}

// untrue says why a problem is none; "" if it is as it says. Kinds that are not here are none.
func (f *findings) untrue(t *testing.T, p *xsd.Problem) string {
	title := fmt.Sprintf("%s {%s}%s", p.Component, p.Name.Space, p.Name.Local)
	switch p.Kind {
	case xsd.NotDeclared:
		if at := f.declared[title]; at != "" {
			return title + " is declared in " + at
		}
		return ""
	case xsd.NoOperation:
		if at := f.declared[fmt.Sprintf("portType {%s}%s %s", p.Name.Space, p.Name.Local, p.Component)]; at != "" {
			return "it is in " + at
		}
		return ""
	case xsd.NoPrefix:
		if bytes.Contains(shared.Read(t, p.Place.Location), []byte("xmlns:"+p.Name.Local+"=")) {
			return "the file has " + p.Name.Local
		}
		return ""
	case xsd.InItself:
		seen := map[string]bool{}
		for todo := []string{title}; len(todo) > 0; todo = todo[1:] {
			for _, to := range f.inside[todo[0]] {
				next := fmt.Sprintf("%s {%s}%s", p.Component, to.Space, to.Local)
				if next == title {
					return ""
				}
				if !seen[next] {
					seen[next] = true
					todo = append(todo, next)
				}
			}
		}
		return "it does not contain itself"
	case xsd.OtherProblem:
	}
	return "no reason of the list"
}
