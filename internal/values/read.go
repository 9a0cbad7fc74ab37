package values

import (
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Values are those of a message that [Translator.Write] or [Translator.Sample] has made.
func (t *Translator) Values(text []byte) (*JSON, error) {
	body, err := written(text)
	if err != nil {
		return nil, err
	}
	return t.Read(body), nil
}

// Read returns the values of a message: those of what is in Body. What is not as described is read
// as if nothing were said of it. body is an element that [xsd.ParseMessage] has read.
func (t *Translator) Read(body *xsd.DocumentNode) *JSON {
	r := &messageReader{Translator: t}
	if t.contents.Encoded {
		r.identify(body)
	}
	c := t.contents
	switch {
	case c.Type != nil:
		return r.element(&xsd.ElementDecl{Name: bodyName, Type: c.Type}, body)
	case len(c.Body) == 1 && (len(body.Children) == 1 || c.Encoded && len(body.Children) > 0):
		e := c.Body[0]
		if n := body.Children[0]; n.Name != e.Name && !c.Encoded {
			return r.element(r.declared(modelOfAny, n.Name), n)
		}
		return r.element(e, body.Children[0])
	}
	v, again := &JSON{Kind: Object}, map[*JSON]bool{}
	for _, n := range body.Children {
		e := r.declared(modelOfAny, n.Name)
		for _, part := range c.Body {
			if part.Name == n.Name {
				e = part
			}
		}
		switch one, there := r.element(e, n), v.Get(n.Name.Local); {
		case there == nil:
			v.set(n.Name.Local, one)
		case again[there]:
			there.Items = append(there.Items, one)
		default:
			first := *there
			*there = JSON{Kind: Array, Items: []*JSON{&first, one}}
			again[there] = true
		}
	}
	return v
}

// messageReader reads a message.
type messageReader struct {
	*Translator
	ids map[string]*xsd.DocumentNode // in SOAP's encoding
	// inside are the values that are being read, which none inside them can be again.
	inside map[*xsd.DocumentNode]bool
	// repeated is what references have repeated so far, in bytes.
	repeated int
}

const (
	// maxRepeated bounds what references repeat, in bytes: beyond it they stay references. A few
	// that refer to one another could make a message of any length.
	maxRepeated = 16 << 20
	// elementSize is what an element counts without its text.
	elementSize = 64
)

// identify finds the values that others refer to.
func (r *messageReader) identify(n *xsd.DocumentNode) {
	if r.ids == nil {
		r.ids, r.inside = map[string]*xsd.DocumentNode{}, map[*xsd.DocumentNode]bool{}
	}
	if id := n.Attr("id"); id != "" {
		r.ids[id] = n
	}
	for _, kid := range n.Children {
		r.identify(kid)
	}
}

// element is the value of an element.
func (r *messageReader) element(e *xsd.ElementDecl, n *xsd.DocumentNode) *JSON {
	if id, ok := strings.CutPrefix(n.Attr("href"), "#"); ok && r.ids[id] != nil {
		if n = r.ids[id]; r.inside[n] || r.repeated > maxRepeated {
			return &JSON{Kind: Object, Members: []Member{{"@href", &JSON{Kind: String, Text: "#" + id}}}}
		}
		r.inside[n] = true
		defer delete(r.inside, n)
	}
	if len(r.inside) > 0 {
		r.repeated += elementSize + len(n.Text)
		for _, a := range n.Attrs {
			r.repeated += len(a.Value)
		}
	}
	v := &JSON{Kind: Object}
	of := r.typeOf(e, n, v)
	isNil := false
	for _, a := range n.Attrs {
		switch {
		case a.Name == xsiNil:
			isNil = a.Value == "true" || a.Value == "1"
		case a.Name.Space == xmlns.XSI, r.ids != nil && isEncoding(a.Name):
		default:
			v.set(attributeKey(a.Name), r.scalar(attributeType(of, a.Name), n, a.Value))
		}
	}
	item, array := r.isArray(of)
	switch {
	case isNil && len(n.Children) == 0 && strings.TrimSpace(n.Text) == "":
		return withAttributes(v, &JSON{Kind: Null})
	case array:
		list := &JSON{Kind: Array}
		for _, kid := range n.Children {
			list.Items = append(list.Items, r.element(&xsd.ElementDecl{Name: kid.Name, Type: item.Type}, kid))
		}
		return withAttributes(v, list)
	case !isAny(of) && of.Simple != nil && len(n.Children) == 0:
		return withAttributes(v, r.scalar(of.Simple, n, n.Text))
	case len(n.Children) == 0 && (isAny(of) || of.Mixed) && (n.Text != "" || isAny(of) && len(v.Members) == 0):
		return withAttributes(v, &JSON{Kind: String, Text: n.Text})
	}
	r.children(of, n, v)
	return v
}

// withAttributes is a value alone, or "$" beside its attributes.
func withAttributes(of, value *JSON) *JSON {
	if len(of.Members) == 0 {
		return value
	}
	of.set("$", value)
	return of
}

func isEncoding(name xsd.QName) bool {
	return name.Space == xmlns.SOAP11Encoding || name.Space == xmlns.SOAP12Encoding || name.Local == "encodingStyle" ||
		name.Space == "" && (name.Local == "id" || name.Local == "href")
}

func attributeType(of *xsd.TypeDef, name xsd.QName) *xsd.Simple {
	if of != nil {
		for _, a := range of.Attributes {
			if a.Name == name {
				return a.Type
			}
		}
	}
	return nil
}

// typeOf is the type of an element, and notes the one that xsi:type names.
func (r *messageReader) typeOf(e *xsd.ElementDecl, n *xsd.DocumentNode, v *JSON) *xsd.TypeDef {
	for _, a := range n.Attrs {
		if a.Name != xsiType {
			continue
		}
		name, ok := n.QName(a.Value)
		t := r.set.Type(name)
		switch {
		case !ok || t == nil, e.Type != nil && name == e.Type.Name:
		case r.ids != nil && !isAny(e.Type) && (t.Array != nil || t.Simple != nil):
			// SOAP's encoding names the types of all values
		default:
			v.set("$type", &JSON{Kind: String, Text: typeKey(name)})
			return t
		}
	}
	return e.Type
}

// children adds the elements, and the text between them, to an object: by their names, if these
// give their order back.
func (r *messageReader) children(of *xsd.TypeDef, n *xsd.DocumentNode, v *JSON) {
	m := r.modelFor(of)
	if !r.regains(of, m, n) {
		r.ordered(m, n, v)
		return
	}
	by, count := map[string]*JSON{}, map[xsd.QName]int{}
	for _, kid := range n.Children {
		count[kid.Name]++
	}
	for _, kid := range n.Children {
		key := m.key(kid.Name)
		value := r.element(r.declared(m, kid.Name), kid)
		list := by[key]
		switch {
		case list != nil:
			list.Items = append(list.Items, value)
		case m.many[kid.Name] || count[kid.Name] > 1: // several are an array
			by[key] = &JSON{Kind: Array, Items: []*JSON{value}}
			v.set(key, by[key])
		default:
			v.set(key, value)
		}
	}
}

// regains reports whether names and numbers of the elements give their order back.
func (r *messageReader) regains(of *xsd.TypeDef, m *childRules, n *xsd.DocumentNode) bool {
	if strings.TrimSpace(n.Text) != "" {
		return false
	}
	by := map[xsd.QName]*group{}
	var groups []*group
	for at, kid := range n.Children {
		g := by[kid.Name]
		if g == nil {
			g = &group{name: kid.Name, at: at, wild: m.names[kid.Name] == nil}
			by[kid.Name] = g
			groups = append(groups, g)
		}
		g.count++
	}
	var p *xsd.Particle
	if !isAny(of) {
		p = of.Particle
	}
	for i, x := range arrange(p, groups) {
		if n.Children[i].Name != x.of.name {
			return false
		}
	}
	return true
}

func (r *messageReader) ordered(m *childRules, n *xsd.DocumentNode, v *JSON) {
	list := &JSON{Kind: Array}
	at := 0
	text := func(to int) {
		if s := n.Text[at:to]; s != "" && (strings.TrimSpace(n.Text) != "") {
			list.Items = append(list.Items, &JSON{Kind: String, Text: s})
		}
		at = to
	}
	for _, kid := range n.Children {
		text(kid.Before)
		value := r.element(r.declared(m, kid.Name), kid)
		list.Items = append(list.Items, &JSON{Kind: Object, Members: []Member{{m.key(kid.Name), value}}})
	}
	text(len(n.Text))
	v.set("#", list)
}
