package bind

import (
	"encoding/xml"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// binder makes a program of a struct.
type binder struct {
	records map[elementOf]*structure
	// unqualified: elements whose tags have no namespace are in none. Otherwise they are in that of
	// the element around them.
	unqualified bool
	prefixes    map[string]string // of namespaces, with a colon; "": the one that needs none
	numbered    int               // prefixes
	declared    []byte            // the attributes that declare them
	attrs       []*field          // all: their markup is made when all namespaces are known
	elements    []*field
}

// elementOf is a struct in an element of a namespace.
type elementOf struct {
	typ   reflect.Type
	space string
}

var (
	nameType      = reflect.TypeFor[xml.Name]()
	xmlMarshals   = reflect.TypeFor[xml.Marshaler]()
	xmlUnmarshals = reflect.TypeFor[xml.Unmarshaler]()
)

func unfit(format string, args ...any) error { return &Error{What: fmt.Sprintf(format, args...)} }

func compile(t reflect.Type) (*Blueprint, error) {
	if t.Kind() != reflect.Struct || t == timeType {
		return nil, &Error{t.String(), "is no struct, which the content of a message is"}
	}
	c := &binder{records: map[elementOf]*structure{}, prefixes: map[string]string{}}
	called, _, _ := strings.Cut(t.Name(), "[")
	if called == "" {
		called = "struct"
	}
	own, err := rootOf(t)
	if err != nil {
		return nil, in(err, called)
	}
	root := &field{space: own.space, local: own.local, any: own.space == "", typ: t}
	switch c.unqualified = own.unqualified; {
	case own.space == "":
	case c.unqualified:
		c.prefix(own.space, false)
	default:
		c.prefixes[own.space] = ""
		c.declare("", own.space)
	}
	if root.record, err = c.record(t, own.space); err != nil {
		return nil, in(err, called)
	}
	c.elements = append(c.elements, root)
	c.tags()
	return &Blueprint{root, slices.Concat(root.open, c.declared)}, nil
}

// in is an error in a field of a path.
func in(err error, name string) error {
	e := err.(*Error) //nolint:errorlint,forcetypeassert // the compiler makes no other
	if e.Path != "" {
		if !strings.HasPrefix(e.Path, "[") {
			name += "."
		}
		name += e.Path
	}
	return &Error{name, e.What}
}

// fieldTag is what the tags of a field say.
type fieldTag struct {
	space, local                       string
	attr, text, omit, nil, unqualified bool
}

func tagOf(f *reflect.StructField) (t fieldTag, err error) {
	name, options, _ := strings.Cut(f.Tag.Get("xml"), ",")
	if t.space, t.local, _ = strings.Cut(name, " "); t.local == "" {
		t.space, t.local = "", name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "attr":
			t.attr = true
		case "chardata":
			t.text = true
		case "omitempty":
			t.omit = true
		default:
			return t, unfit("the option %q of its tag is not known", option)
		}
	}
	if _, err := appendText(nil, t.space); err != nil {
		return t, unfit("the namespace %+q cannot stand in XML", t.space)
	}
	switch own := f.Tag.Get("soap"); own {
	case "":
	case "nil":
		t.nil = true
	case "unqualified":
		t.unqualified = true
	default:
		return t, unfit("the tag soap:%q is not known", own)
	}
	switch {
	case t.local != "" && !pull.IsLocalName(t.local):
		return t, unfit("%q is no name of an element or attribute", t.local)
	case t.space == xmlns.XMLNS, t.space == xmlns.XML && !t.attr:
		return t, unfit("nothing can be in the namespace %s", t.space)
	case t.text && (t.attr || t.omit || t.nil || t.local != ""), t.attr && t.nil, t.omit && t.nil:
		return t, unfit("the options of its tags exclude each other")
	case t.unqualified && f.Type != nameType:
		return t, unfit(`soap:"unqualified" is for XMLName alone`)
	}
	return t, nil
}

// rootOf is the name of the elements of a struct: that of its field XMLName, or its own.
func rootOf(t reflect.Type) (own fieldTag, err error) {
	if own, ok, err := named(t); ok || err != nil {
		return own, err
	}
	if !pull.IsLocalName(t.Name()) {
		return own, unfit("no name of an element: give it a field XMLName of type xml.Name")
	}
	return fieldTag{local: t.Name()}, nil
}

// named is what the field XMLName of a struct says; ok is false if there is none with a name.
func named(t reflect.Type) (own fieldTag, ok bool, err error) {
	if t.Kind() != reflect.Struct {
		return own, false, nil
	}
	f, ok := t.FieldByName("XMLName")
	if !ok || f.Type != nameType || f.Tag.Get("xml") == "-" {
		return own, false, nil
	}
	if own, err = tagOf(&f); err != nil {
		return own, false, in(err, f.Name)
	}
	return own, own.local != "", nil
}

// record compiles a struct in elements of a namespace, once.
func (c *binder) record(t reflect.Type, space string) (*structure, error) {
	key := elementOf{t, space}
	if r := c.records[key]; r != nil {
		return r, nil
	}
	r := &structure{}
	c.records[key] = r // before its fields, which may contain it
	if err := c.add(r, t, space, 0); err != nil {
		return nil, err
	}
	if r.text != nil && len(r.elements) > 0 {
		return nil, unfit("has text and elements")
	}
	return r, nil
}

// add adds the fields of a struct to a record: its own, or one that is embedded in it.
func (c *binder) add(r *structure, t reflect.Type, space string, offset uintptr) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("xml") == "-" {
			continue
		}
		if err := c.addField(r, &f, space, offset); err != nil {
			return in(err, f.Name)
		}
	}
	return nil
}

func (c *binder) addField(r *structure, of *reflect.StructField, space string, offset uintptr) error {
	t, err := tagOf(of)
	if err != nil {
		return err
	}
	inlined := of.Anonymous && t.local == "" && of.Type.Kind() == reflect.Struct && of.Type != timeType
	switch {
	case inlined && t == fieldTag{} && !isOwn(of.Type):
		return c.add(r, of.Type, space, offset+of.Offset)
	case !of.IsExported():
		return unfit(`is not exported: leave it out by xml:"-"`)
	case of.Name == "XMLName" && of.Type == nameType:
		if r.named == nil {
			r.named = &field{offset: offset + of.Offset}
		}
		return nil
	}
	f := &field{offset: offset + of.Offset, space: t.space, local: t.local, any: t.space == "", omit: t.omit}
	if err := c.value(f, of.Type); err != nil {
		return err
	}
	switch {
	case t.nil && f.form != pointed && f.form != pointedList:
		return unfit(`soap:"nil" is for pointers`)
	case t.text:
		return r.setText(f)
	}
	if f.local == "" {
		f.local = of.Name
	}
	if t.attr {
		return c.addAttr(r, f)
	}
	if t.nil {
		f.null = []byte{}
		c.prefix(xmlns.XSI, true)
	}
	return c.addElement(r, f, t.local != "", space)
}

// isOwn reports whether a struct has a text of its own.
func isOwn(t reflect.Type) bool {
	s, err := scalarOf(t)
	return s != nil || err != nil
}

func (r *structure) setText(f *field) error {
	switch {
	case r.text != nil:
		return unfit("the text has a field already")
	case f.scalar == nil || f.form != single:
		return unfit("text is a single value, not %s", f.list)
	}
	r.text = f
	return nil
}

func (c *binder) addAttr(r *structure, f *field) error {
	if f.scalar == nil || f.form > pointed {
		return unfit("an attribute is a single value, not %s", f.list)
	}
	for _, other := range r.attrs {
		if other.local == f.local && other.space == f.space {
			return unfit("another field has the attribute %s", name(f.space, f.local))
		}
	}
	if f.any = false; f.space != "" {
		c.prefix(f.space, true)
	}
	r.attrs, c.attrs = append(r.attrs, f), append(c.attrs, f)
	return nil
}

// addElement adds a field whose element has the name in its tag, if there is one, in that of its
// type, or its own. space is that of the element around it.
func (c *binder) addElement(r *structure, f *field, tagged bool, space string) error {
	own, ok, err := named(f.typ)
	switch {
	case err != nil:
		return err
	case ok && tagged && (own.local != f.local || own.space != "" && f.space != "" && own.space != f.space):
		return unfit("its tag says %s, and that of %s.XMLName %s", name(f.space, f.local), f.typ,
			name(own.space, own.local))
	case ok && f.space == "":
		f.space, f.local, f.any = own.space, own.local, own.space == ""
	}
	if f.any && !c.unqualified {
		f.space = space
	}
	for _, other := range r.elements {
		if other.local == f.local && other.space == f.space {
			return unfit("another field has the element %s", name(f.space, f.local))
		}
	}
	c.prefix(f.space, false)
	r.elements, c.elements = append(r.elements, f), append(c.elements, f)
	if f.scalar != nil {
		return nil
	}
	if f.record, err = c.record(f.typ, f.space); err != nil && f.form >= list {
		err = in(err, "[]")
	}
	return err
}

// value sets what the values of a field are.
func (c *binder) value(f *field, t reflect.Type) error {
	f.typ, f.list = t, t
	for _, check := range []reflect.Type{t, reflect.PointerTo(t)} {
		if check.Implements(xmlMarshals) || check.Implements(xmlUnmarshals) {
			return unfit("%s has MarshalXML or UnmarshalXML, which are not called", t)
		}
	}
	s, err := scalarOf(t)
	switch {
	case err != nil:
		return unfit("%v", err)
	case s != nil:
		f.scalar = s
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		if t == nameType {
			return unfit("an xml.Name is for XMLName alone")
		}
		return nil
	case reflect.Pointer:
		if f.form == single || f.form == list {
			f.form++
			return c.item(f, t)
		}
	case reflect.Slice:
		if f.form == single {
			f.form, f.size = list, t.Elem().Size()
			if err := c.item(f, t); err != nil {
				return in(err, "[]")
			}
			return nil
		}
	default:
	}
	return unfit("%s has no form in XML", t)
}

// item sets what is behind a pointer or in a slice.
func (c *binder) item(f *field, t reflect.Type) error {
	all := f.list
	err := c.value(f, t.Elem())
	f.list = all
	return err
}

// prefix gives a namespace a prefix, unless it has one. Attributes are in none by default.
func (c *binder) prefix(space string, attr bool) {
	key := space
	if p, ok := c.prefixes[space]; ok && (!attr || p != "") || space == "" {
		return
	} else if ok {
		key += defaulted
	}
	if _, ok := c.prefixes[key]; ok {
		return
	}
	prefix := "xsi"
	switch space {
	case xmlns.XML:
		c.prefixes[space] = "xml:"
		return
	case xmlns.XSI:
	default:
		c.numbered++
		prefix = "n" + strconv.Itoa(c.numbered)
	}
	c.prefixes[key] = prefix + ":"
	c.declare(":"+prefix, space)
}

// defaulted follows a namespace that needs no prefix, where attributes have one.
const defaulted = " of attributes"

func (c *binder) declare(prefix, space string) {
	c.declared = append(c.declared, " xmlns"+prefix+`="`...)
	c.declared, _ = appendText(c.declared, space) // tagOf has refused what that cannot
	c.declared = append(c.declared, '"')
}

// tags makes the markup of all fields.
func (c *binder) tags() {
	for _, f := range c.attrs {
		prefix := c.prefixes[f.space]
		if f.space != "" && prefix == "" {
			prefix = c.prefixes[f.space+defaulted]
		}
		f.open = []byte(" " + prefix + f.local + `="`)
	}
	for _, f := range c.elements {
		qualified := c.prefixes[f.space] + f.local
		f.open, f.close = []byte("<"+qualified), []byte("</"+qualified+">")
		if f.null != nil {
			f.null = []byte("<" + qualified + ` xsi:nil="true"></` + qualified + ">")
		}
		if f.scalar != nil {
			f.open = append(f.open, '>')
		}
	}
}

// numbered is an item of a list, from 1.
func numbered(local string, n int) string { return local + "[" + strconv.Itoa(n) + "]" }
