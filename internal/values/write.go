package values

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// maxFound is how many places are reported of one value.
const maxFound = 32

var (
	xsiType   = xsd.QName{Space: xmlns.XSI, Local: "type"}
	xsiNil    = xsd.QName{Space: xmlns.XSI, Local: "nil"}
	arrayType = xsd.QName{Space: xmlns.SOAP11Encoding, Local: "arrayType"}
	encStyle  = xsd.QName{Space: xmlns.SOAP11, Local: "encodingStyle"}
	bodyName  = xsd.QName{Local: "Body"}
)

// Write makes the envelope of a message from its values, with these header blocks, written one
// after the other; header may be empty. The error is [MisfitsError]: then nothing is to be sent.
func (t *Translator) Write(v *JSON, header string) ([]byte, error) {
	w := &messageWriter{Translator: t, tagWriter: newTagWriter(t.version)}
	w.body(v)
	if len(w.found) > 0 {
		return nil, MisfitsError(w.found)
	}
	text := w.envelope(header)
	found, err := t.check(text, w.places)
	if err != nil || len(found) > 0 {
		return nil, orMisfits(found, err)
	}
	return text, nil
}

func orMisfits(found []xsd.Misfit, err error) error {
	if err != nil {
		return err
	}
	return MisfitsError(found)
}

// written is the Body, which is the last, of a message that a Translator wrote.
func written(text []byte) (*xsd.DocumentNode, error) {
	root, err := xsd.ParseMessage("message", text)
	if err != nil {
		return nil, err
	}
	return root.Children[len(root.Children)-1], nil
}

// check compares a message that was written with its description, and reports places of what it was
// written from: those of the elements in Body, in their order.
func (t *Translator) check(text []byte, places []xsd.Position) ([]xsd.Misfit, error) {
	body, err := written(text)
	if err != nil {
		return nil, err
	}
	at := 0
	var place func(n *xsd.DocumentNode)
	place = func(n *xsd.DocumentNode) {
		n.Place = places[at]
		at++
		for _, kid := range n.Children {
			place(kid)
		}
	}
	for _, n := range body.Children {
		place(n)
	}
	return t.Misfits(body), nil
}

// Misfits compares what is in Body with the description. The name of a result in SOAP's encoding
// says nothing (SOAP 1.1, section 7.1).
func (t *Translator) Misfits(body *xsd.DocumentNode) (found []xsd.Misfit) {
	c, got := t.contents, body.Children
	switch {
	case c.Encoded && t.version == 11 && len(got) > 0 && len(c.Body) > 0:
		e := *c.Body[0]
		e.Name = got[0].Name
		return t.set.CheckEncoded(&e, got)
	case c.Encoded: // SOAP 1.2's encoding, which nothing is checked of
		return nil
	case c.Type != nil:
		return t.set.Check(&xsd.ElementDecl{Name: bodyName, Type: c.Type}, body)
	}
	for i, n := range got {
		if i == len(c.Body) {
			return append(found, xsd.Misfit{Place: n.Place, Path: n.Name.Local, What: n.Name.String() + " is too many"})
		}
		found = append(found, t.set.Check(c.Body[i], n)...)
	}
	if missing := len(got); missing < len(c.Body) {
		found = append(found, xsd.Misfit{
			Place: body.Place, Path: bodyName.Local, What: c.Body[missing].Name.String() + " is missing",
		})
	}
	return found
}

// messageWriter writes a message from values.
type messageWriter struct {
	*Translator
	tagWriter
	found []xsd.Misfit
}

func (w *messageWriter) fail(at xsd.Position, path, format string, args ...any) {
	if len(w.found) < maxFound {
		w.found = append(w.found, xsd.Misfit{Place: at, Path: path, What: fmt.Sprintf(format, args...)})
	}
}

// body writes what is in Body: of one element its value, of several an object of them.
func (w *messageWriter) body(v *JSON) {
	c := w.contents
	switch {
	case c.Type != nil:
		w.content(c.Type, v, bodyName.Local)
	case len(c.Body) == 1:
		w.element(c.Body[0], v, c.Body[0].Name.Local)
	default:
		w.parts(v)
	}
}

func (w *messageWriter) parts(v *JSON) {
	if v.Kind != Object {
		w.fail(v.Place, bodyName.Local, "%s, where an object is expected", named[v.Kind])
		return
	}
	var all childRules
	for _, e := range w.contents.Body {
		all.order = append(all.order, e.Name.Local)
		part := v.Get(e.Name.Local)
		if part == nil {
			w.fail(v.Place, bodyName.Local, "%s is missing", e.Name.Local)
			continue
		}
		w.element(e, part, e.Name.Local)
	}
	for _, m := range v.Members {
		if !slices.Contains(all.order, m.Name) {
			w.fail(m.Value.Place, bodyName.Local, "%s is not expected%s", m.Name, all.expected())
		}
	}
}

// element writes an element with its tags.
func (w *messageWriter) element(e *xsd.ElementDecl, v *JSON, path string) {
	of := e.Type
	w.open(e.Name, v.Place)
	named := v.Get("$type")
	if named != nil {
		name, t, err := w.typeNamed(named.Text, of)
		if err != nil {
			w.fail(named.Place, path, "%v", err)
		} else {
			w.attr(xsiType, w.prefixed(name))
			of = t
		}
	}
	if w.contents.Encoded {
		items := -1
		if v.Kind != Null {
			items = len(itemsOf(v))
		}
		w.encodingAttrs(&w.tagWriter, e, of, named != nil, items)
	}
	for _, m := range v.Members {
		if strings.HasPrefix(m.Name, "@") {
			w.attribute(of, m, path)
		}
	}
	if text := v.Get("$"); v.Kind == Null || text != nil && text.Kind == Null {
		w.alone(v, "$", path)
		w.attr(xsiNil, "true")
		w.inside()
	} else {
		w.inside()
		w.content(of, v, path)
	}
	w.close(e.Name)
}

// encodingAttrs writes the attributes that SOAP 1.1's encoding has: the type of each value, unless
// xsi:type is there, the number of items of an array (-1: it is nil), and the encoding itself.
func (t *Translator) encodingAttrs(w *tagWriter, e *xsd.ElementDecl, of *xsd.TypeDef, typed bool, items int) {
	if len(t.contents.Body) == 1 && e == t.contents.Body[0] {
		if t.version == 11 {
			w.attr(encStyle, xmlns.SOAP11Encoding)
		}
		return
	}
	_, array := t.isArray(of)
	switch {
	case array && items >= 0:
		if !typed {
			w.attr(xsiType, w.prefixed(xsd.QName{Space: xmlns.SOAP11Encoding, Local: "Array"}))
		}
		if text := arrayOf(w, of, items); text != "" {
			w.attr(arrayType, text)
		}
	case !typed && !isAny(of) && of.Name.Local != "":
		w.attr(xsiType, w.prefixed(of.Name))
	}
}

// arrayOf is the value of arrayType for so many items; empty: their type has no name.
func arrayOf(w *tagWriter, of *xsd.TypeDef, n int) string {
	name := of.Array.Name
	if name.Local == "" {
		return ""
	}
	inner := strings.Count(of.Dimensions, "[") - 1
	size := strconv.Itoa(n) + strings.Repeat(",1", strings.Count(of.Dimensions, ","))
	return w.prefixed(name) + strings.Repeat("[]", max(inner, 0)) + "[" + size + "]"
}

func (w *messageWriter) attribute(of *xsd.TypeDef, m Member, path string) {
	name := attributeName(m.Name)
	text, wrong := w.lexical(attributeType(of, name), m.Value)
	if no := wrongName(name); no != "" {
		wrong = no
	} else if slices.Contains(w.attrs, name) {
		wrong = "the attribute is there twice"
	}
	if wrong != "" {
		w.fail(m.Value.Place, path+"/"+m.Name, "%s", wrong)
		return
	}
	w.attr(name, text)
}

// content writes what is between the tags of an element of a type.
func (w *messageWriter) content(of *xsd.TypeDef, v *JSON, path string) {
	item, array := w.isArray(of)
	switch {
	case array && (v.Kind == Array || v.Kind == Object && v.Get("#") == nil):
		w.alone(v, "$", path)
		if list := v.Get("$"); v.Kind == Object && (list == nil || list.Kind != Array) {
			w.fail(v.Place, path, `an object, where an array is expected: beside attributes it is "$"`)
		}
		for i, one := range itemsOf(v) {
			w.element(item, one, fmt.Sprintf("%s/%s[%d]", path, item.Name.Local, i+1))
		}
	case !isAny(of) && of.Simple != nil:
		w.simple(of.Simple, v, path)
	case v.Kind == Object && v.Get("#") != nil:
		w.alone(v, "#", path)
		w.ordered(of, v.Get("#"), path)
	case v.Kind == Object && (isAny(of) || of.Mixed) && v.Get("$") != nil:
		w.simple(nil, v, path)
	case v.Kind == Object:
		w.members(of, v, path)
	case v.Kind != Array && (isAny(of) || of.Mixed):
		w.simple(nil, v, path)
	default:
		w.fail(v.Place, path, "%s, where an object is expected: in it %s", named[v.Kind],
			strings.TrimPrefix(w.model(of).expected(), ": "))
	}
}

// itemsOf are the items of an array of SOAP's encoding: an array, or an object with attributes that
// has it as "$".
func itemsOf(v *JSON) []*JSON {
	if v.Kind == Object {
		if v = v.Get("$"); v == nil {
			return nil
		}
	}
	return v.Items
}

// simple writes the text of an element: a value, or "$" of an object with attributes.
func (w *messageWriter) simple(s *xsd.Simple, v *JSON, path string) {
	if v.Kind == Object {
		w.alone(v, "$", path)
		if v = v.Get("$"); v == nil {
			return
		}
	}
	text, wrong := w.lexical(s, v)
	if wrong != "" {
		w.fail(v.Place, path, "%s", wrong)
		return
	}
	w.text(text)
}

// alone reports the members of an object beside one that is its whole content: attributes may be
// there.
func (w *messageWriter) alone(v *JSON, name, path string) {
	for _, m := range v.Members {
		if m.Name != name && m.Name != "$type" && !strings.HasPrefix(m.Name, "@") {
			w.fail(m.Value.Place, path, "%s beside %q, which is all there is but attributes, which begin with @",
				m.Name, name)
		}
	}
}

// modelOfAny is that of elements of which nothing is said.
var modelOfAny = &childRules{any: true, open: true}

func (t *Translator) modelFor(of *xsd.TypeDef) *childRules {
	if isAny(of) {
		return modelOfAny
	}
	return t.model(of)
}

// members writes the elements of an object, in the order of the content model.
func (w *messageWriter) members(of *xsd.TypeDef, v *JSON, path string) {
	m := w.modelFor(of)
	var groups []*group
	values := map[*group][]*JSON{}
	for at, member := range v.Members {
		if strings.HasPrefix(member.Name, "@") || member.Name == "$type" {
			continue
		}
		name, wrong := m.name(member.Name)
		if strings.HasPrefix(member.Name, "$") {
			wrong = member.Name + " is not expected" + m.expected()
		}
		if wrong != "" {
			w.fail(member.Value.Place, path, "%s", wrong)
			continue
		}
		g := &group{name: name, at: at, wild: m.names[name] == nil}
		values[g] = w.occurrences(m, name, member.Value)
		g.count = len(values[g])
		groups = append(groups, g)
	}
	var p *xsd.Particle
	if !isAny(of) {
		p = of.Particle
	}
	for _, x := range arrange(p, groups) {
		w.child(m, x.of.name, values[x.of][x.index], path)
	}
}

// occurrences are the values of elements of one name: an array is several, unless one of them is an
// array itself, of which there may be one.
func (w *messageWriter) occurrences(m *childRules, name xsd.QName, v *JSON) []*JSON {
	if v.Kind != Array {
		return []*JSON{v}
	}
	if e := m.names[name]; e != nil && !m.many[name] && !isAny(e.Type) {
		if _, array := w.isArray(e.Type); array || isList(e.Type.Simple) {
			return []*JSON{v}
		}
	}
	return v.Items
}

func isList(s *xsd.Simple) bool {
	return s != nil && (s.Variety == xsd.List || s.Variety == xsd.Union && slices.ContainsFunc(s.Members, isList))
}

// child writes an element inside another one, by what its model or the schemas say of it.
func (w *messageWriter) child(m *childRules, name xsd.QName, v *JSON, path string) {
	if wrong := wrongName(name); wrong != "" {
		w.fail(v.Place, path, "%s", wrong)
		return
	}
	w.element(w.declared(m, name), v, path+"/"+name.Local)
}

func (t *Translator) declared(m *childRules, name xsd.QName) *xsd.ElementDecl {
	if e := m.names[name]; e != nil {
		return e
	}
	if e := t.set.Element(name); e != nil && name.Local != "" {
		return e
	}
	return &xsd.ElementDecl{Name: name}
}

// ordered writes elements and text in their order.
func (w *messageWriter) ordered(of *xsd.TypeDef, list *JSON, path string) {
	if list.Kind != Array {
		w.fail(list.Place, path, `"#" is %s, where an array of texts and objects is expected`, named[list.Kind])
		return
	}
	m := w.modelFor(of)
	for _, one := range list.Items {
		switch {
		case one.Kind == String:
			if i := forbidden(one.Text); i >= 0 {
				w.fail(one.Place, path, "%q, which XML cannot have", one.Text[i:i+1])
			}
			w.text(one.Text)
		case one.Kind == Object && len(one.Members) == 1:
			name, wrong := m.name(one.Members[0].Name)
			if wrong != "" {
				w.fail(one.Place, path, "%s", wrong)
				continue
			}
			w.child(m, name, one.Members[0].Value, path)
		default:
			w.fail(one.Place, path, `%s in "#", where a text or an object of one name is expected`, named[one.Kind])
		}
	}
}
