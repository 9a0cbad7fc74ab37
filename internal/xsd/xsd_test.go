package xsd_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

// schema is a document with the usual prefixes.
func schema(attrs, content string) string {
	return `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" ` + attrs + `>` + content +
		`</xs:schema>`
}

const target = `targetNamespace="urn:t" elementFormDefault="qualified"`

// files are documents by location.
type files map[string]string

func (f files) open(_ context.Context, location string) ([]byte, error) {
	text, ok := f[location]
	if !ok {
		return nil, fmt.Errorf("%s: %w", location, fs.ErrNotExist)
	}
	return []byte(text), nil
}

// load takes the schema at a.xsd, and what it imports.
func load(t testing.TB, f files) *xsd.Set {
	t.Helper()
	l := &xsd.Loader{Set: xsd.NewSet(), Open: f.open}
	root, err := l.Document(t.Context(), "a.xsd")
	require.NoError(t, err)
	l.Schema(t.Context(), root, "")
	return l.Set
}

func name(local string) xsd.QName { return xsd.QName{Space: "urn:t", Local: local} }

// treeOf is what an element of one document consists of.
func treeOf(t testing.TB, f files) string {
	t.Helper()
	e := load(t, f).Element(name("e"))
	require.NotNil(t, e)
	var reach xsd.Reach
	reach.Element(e)
	require.Empty(t, reach.Problems)
	var b strings.Builder
	require.NoError(t, xsd.Tree(&b, e))
	return b.String()
}

func TestConstructs(t *testing.T) {
	for _, tc := range []struct{ what, attrs, content, tree string }{
		{"sequence of typed elements, with how often they occur", target,
			`<xs:element name="e"><xs:complexType><xs:sequence>
				<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:string" minOccurs="0"/>
				<xs:element name="c" type="xs:float" minOccurs="2" maxOccurs="3" nillable="true"/>
				<xs:element name="d" type="xs:date" maxOccurs="unbounded"/><xs:element name="x" maxOccurs="0"/>
			</xs:sequence></xs:complexType></xs:element>`,
			"{urn:t}e  elements\n  a  int\n  b  0..1  string\n  c  2..3  float  nillable\n  d  1..*  date\n"},
		{"local elements without the namespace, by default and by form", `targetNamespace="urn:t"`,
			`<xs:element name="e"><xs:complexType><xs:sequence>
				<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:int" form="qualified"/>
			</xs:sequence></xs:complexType></xs:element>`,
			"{urn:t}e  elements\n  a  int\n  b  int\n"},
		{"extension: the base comes first, and so do its attributes", target,
			`<xs:element name="e" type="t:derived"/>
			<xs:complexType name="derived"><xs:complexContent><xs:extension base="t:base">
				<xs:sequence><xs:element name="b" type="xs:int"/></xs:sequence><xs:attribute name="y" type="xs:int"/>
			</xs:extension></xs:complexContent></xs:complexType>
			<xs:complexType name="base"><xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence>
				<xs:attribute name="x" use="required" type="xs:string"/></xs:complexType>`,
			"{urn:t}e  elements\n  @x  string  required\n  @y  int\n  a  int\n  b  int\n"},
		{"restriction: its own model; attributes stay unless prohibited", target,
			`<xs:element name="e" type="t:r"/>
			<xs:complexType name="r"><xs:complexContent><xs:restriction base="t:base">
				<xs:sequence><xs:element name="a" type="xs:byte"/></xs:sequence>
					<xs:attribute name="x" use="prohibited"/>
			</xs:restriction></xs:complexContent></xs:complexType>
			<xs:complexType name="base"><xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence>
				<xs:attribute name="x" type="xs:string"/><xs:attribute name="y" type="xs:string"/></xs:complexType>`,
			"{urn:t}e  elements\n  @y  string\n  a  byte\n"},
		{"simple content, list, union, enumeration", target,
			`<xs:element name="e"><xs:complexType><xs:simpleContent><xs:extension base="t:u">
				<xs:attribute name="n" type="t:l"/></xs:extension></xs:simpleContent></xs:complexType></xs:element>
			<xs:simpleType name="u"><xs:union memberTypes="xs:int t:color"/></xs:simpleType>
			<xs:simpleType name="l"><xs:list itemType="xs:float"/></xs:simpleType>
			<xs:simpleType name="color"><xs:restriction base="xs:string">
				<xs:enumeration value="red"/><xs:enumeration value="blue"/></xs:restriction></xs:simpleType>`,
			"{urn:t}e  int or one of [\"red\" \"blue\"]\n  @n  list of float\n"},
		{"groups, choice, all, wildcards", target,
			`<xs:element name="e"><xs:complexType><xs:sequence><xs:group ref="t:g" maxOccurs="2"/>
				<xs:choice minOccurs="0"><xs:element name="c" type="xs:int"/><xs:any namespace="##other"/></xs:choice>
			</xs:sequence><xs:attributeGroup ref="t:ag"/></xs:complexType></xs:element>
			<xs:group name="g"><xs:all><xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:int"/>
				</xs:all></xs:group>
			<xs:attributeGroup name="ag"><xs:attribute name="n" type="xs:ID"/><xs:anyAttribute/></xs:attributeGroup>`,
			"{urn:t}e  elements\n  @n  ID\n  @…\n  in any order  1..2\n    a  int\n    b  int\n" +
				"  one of  0..1\n    c  int\n    …  any element of ##other\n"},
		{"substitution groups, over two steps", target,
			`<xs:element name="e"><xs:complexType><xs:sequence><xs:element ref="t:head"/></xs:sequence>
				</xs:complexType></xs:element>
			<xs:element name="head" type="xs:string" abstract="true"/>
			<xs:element name="m1" type="xs:string" substitutionGroup="t:head"/>
			<xs:element name="m0" substitutionGroup="t:m1"/>`,
			"{urn:t}e  elements\n  head  string  abstract\n  or m0  string\n  or m1  string\n"},
		{"a type that contains itself", target,
			`<xs:element name="e" type="t:tree"/>
			<xs:complexType name="tree"><xs:sequence><xs:element name="v" type="xs:int"/>
				<xs:element name="child" type="t:tree" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
					</xs:complexType>`,
			"{urn:t}e  elements\n  v  int\n  child  0..*  elements  (as above)\n"},
		{"a base whose content has what is derived from it", target,
			`<xs:element name="e" type="t:base"/>
			<xs:complexType name="base"><xs:sequence><xs:element name="d" type="t:derived" minOccurs="0"/>
				</xs:sequence></xs:complexType>
			<xs:complexType name="derived"><xs:complexContent><xs:extension base="t:base"><xs:sequence>
				<xs:element name="v" type="xs:int"/></xs:sequence></xs:extension></xs:complexContent>
					</xs:complexType>`,
			"{urn:t}e  elements\n  d  0..1  elements\n    d  0..1  elements  (as above)\n    v  int\n" +
				"  xsi:type {urn:t}derived  (as above)\n"},
		{"a group that what it contains uses", target,
			`<xs:element name="e"><xs:complexType><xs:group ref="t:g"/></xs:complexType></xs:element>
			<xs:group name="g"><xs:sequence><xs:element name="a" minOccurs="0"><xs:complexType>
				<xs:group ref="t:g"/></xs:complexType>
			</xs:element></xs:sequence></xs:group>`,
			"{urn:t}e  elements\n  a  0..1  elements\n    a  0..1  elements  (as above)\n"},
		{"arrays of SOAP",
			target + ` xmlns:enc="http://schemas.xmlsoap.org/soap/encoding/"
				xmlns:w="http://schemas.xmlsoap.org/wsdl/"`,
			`<xs:element name="e" type="t:ints"/>
			<xs:complexType name="ints"><xs:complexContent><xs:restriction base="enc:Array">
				<xs:attribute ref="enc:arrayType" w:arrayType="xs:int[]"/></xs:restriction></xs:complexContent>
					</xs:complexType>`,
			"{urn:t}e  array of int []\n  @arrayType  string\n  @…\n  …  0..*  any element of ##any\n"},
		{"attributes of the namespace xml, without a schema of it", target,
			`<xs:import namespace="http://www.w3.org/XML/1998/namespace"/><xs:element name="e"><xs:complexType>
				<xs:attribute ref="xml:lang"/></xs:complexType></xs:element>`,
			"{urn:t}e  elements\n  @lang  language\n"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			assert.Equal(t, tc.tree, treeOf(t, files{"a.xsd": schema(tc.attrs, tc.content)}))
		})
	}
}

func TestDocuments(t *testing.T) {
	const tree = "{urn:t}e  elements\n  a  int\n"
	element := `<xs:element name="e"><xs:complexType><xs:sequence><xs:element name="a" type="PREFIXnumber"/>
		</xs:sequence>` +
		`</xs:complexType></xs:element>`
	typ := `<xs:simpleType name="number"><xs:restriction base="xs:int"/></xs:simpleType>`
	mine := strings.ReplaceAll(element, "PREFIX", "t:")
	other := strings.ReplaceAll(element, "PREFIX", "o:")
	for _, tc := range []struct {
		what string
		f    files
	}{
		{"include", files{"a.xsd": schema(target, `<xs:include schemaLocation="b.xsd"/>`+mine),
			"b.xsd": schema(target, typ)}},
		{"chameleon include", files{"a.xsd": schema(target, `<xs:include schemaLocation="b.xsd"/>`+mine),
			"b.xsd": schema("", typ)}},
		{"a chameleon that includes another, which refer to each other", files{
			"a.xsd": schema(target, `<xs:include schemaLocation="d/b.xsd"/>`),
			"d/b.xsd": schema(`elementFormDefault="qualified"`,
				`<xs:include schemaLocation="../c.xsd"/>`+strings.ReplaceAll(element, "PREFIX", "")),
			"c.xsd": schema("", `<xs:include schemaLocation="d/b.xsd"/>`+typ)}},
		{"import", files{"a.xsd": schema(target+` xmlns:o="urn:o"`,
			`<xs:import namespace="urn:o" schemaLocation="b.xsd"/>`+other),
			"b.xsd": schema(`targetNamespace="urn:o"`, typ)}},
		{"imports in a circle", files{"a.xsd": schema(target+` xmlns:o="urn:o"`,
			`<xs:import namespace="urn:o" schemaLocation="b.xsd"/>`+other),
			"b.xsd": schema(`targetNamespace="urn:o"`, `<xs:import namespace="urn:t" schemaLocation="a.xsd"/>`+typ)}},
		{"a document that includes itself", files{"a.xsd": schema(target,
			`<xs:include schemaLocation="a.xsd"/>`+mine+typ)}},
		{"UTF-16, with a byte order mark", files{"a.xsd": "\xff\xfe" + utf16(schema(target, mine+typ))}},
		{"UTF-8, with a byte order mark", files{"a.xsd": "\xef\xbb\xbf" + schema(target, mine+typ)}},
		{"the same declaration twice", files{"a.xsd": schema(target, `<xs:include schemaLocation="b.xsd"/>`+mine+typ),
			"b.xsd": schema(target, typ)}},
	} {
		t.Run(tc.what, func(t *testing.T) { assert.Equal(t, tree, treeOf(t, tc.f)) })
	}
}

func utf16(s string) string {
	var b strings.Builder
	for _, r := range []byte(s) { // ASCII
		b.WriteByte(r)
		b.WriteByte(0)
	}
	return b.String()
}

// What is wrong is reported with its place, and refuses what depends on it alone.
func TestProblems(t *testing.T) {
	const fine = `<xs:element name="fine" type="xs:int"/>`
	for _, tc := range []struct{ what, content, problem string }{
		{"unknown type", `<xs:element name="e" type="t:none"/>`, "a.xsd:2:1: type {urn:t}none is not declared"},
		{"unknown prefix", `<xs:element name="e" type="p:none"/>`, `a.xsd:2:1: the prefix of "p:none" is not declared`},
		{"unknown element",
			`<xs:element name="e"><xs:complexType><xs:sequence><xs:element ref="t:none"/></xs:sequence>
				</xs:complexType></xs:element>`,
			"element {urn:t}none is not declared"},
		{"unknown group", `<xs:element name="e"><xs:complexType><xs:group ref="t:none"/></xs:complexType>
			</xs:element>`,
			"group {urn:t}none is not declared"},
		{"a group in itself",
			`<xs:element name="e"><xs:complexType><xs:group ref="t:g"/></xs:complexType></xs:element>` +
				`<xs:group name="g"><xs:sequence><xs:group ref="t:g"/></xs:sequence></xs:group>`,
			"group {urn:t}g contains itself"},
		{"a type derived from itself", `<xs:element name="e" type="t:x"/><xs:complexType name="x">
			<xs:complexContent>` +
			`<xs:extension base="t:y"/></xs:complexContent></xs:complexType><xs:complexType name="y">
				<xs:complexContent>` +
			`<xs:extension base="t:x"/></xs:complexContent></xs:complexType>`, "is derived from itself"},
		{"bad occurrence",
			`<xs:element name="e"><xs:complexType><xs:sequence><xs:element name="a" minOccurs="3" maxOccurs="2"/>` +
				`</xs:sequence></xs:complexType></xs:element>`, `minOccurs "3" and maxOccurs "2"`},
		{"redefine",
			`<xs:redefine schemaLocation="b.xsd"><xs:complexType name="r"/></xs:redefine>
				<xs:element name="e" type="t:r"/>`,
			"redefine of complexType {urn:t}r, which does not begin with what it was"},
		{"an import that is not there", `<xs:import namespace="urn:o" schemaLocation="o.xsd"/>` +
			`<xs:element name="e" xmlns:o="urn:o" type="o:x"/>`,
			"type {urn:o}x is not declared: a.xsd:2:1: import of o.xsd: o.xsd: file does not exist"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			s := load(t, files{
				"a.xsd": schema(target, "\n"+tc.content+fine),
				"b.xsd": schema(target, `<xs:complexType name="r"/>`),
			})
			var bad, good xsd.Reach
			bad.Element(s.Element(name("e")))
			require.NotEmpty(t, bad.Problems)
			assert.Contains(t, bad.Problems[0].Error(), tc.problem)
			good.Element(s.Element(name("fine")))
			assert.Empty(t, good.Problems)
		})
	}
}

// Documents that are made to cost are refused.
func TestLimits(t *testing.T) {
	for _, tc := range []struct{ what, text, problem string }{
		{"nested", strings.Repeat("<a>", 10_000), "nested deeper than 256"},
		{"attributes", "<a " + manyAttributes(1_000) + "/>", "more than 256 attributes"},
		{"many attributes", "\n <a " + manyAttributes(1_000_000) + "/>", "a.xsd:2:2: a tag of more than 1048576 bytes"},
		{"many elements", "<a>" + strings.Repeat("<b/>", 1_000_000) + "</a>", "more than 500000 elements"},
		{"entities", `<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><a>&z;</a>`, "declares entities"},
		{"an entity of the document type", `<!DOCTYPE a [<!ENTITY % x "<!ENTITY y 'z'>">%x;]><a>&y;</a>`,
			"declares entities"},
		{"many places", `<!DOCTYPE a [<!ENTITY x "` + strings.Repeat("x", 1_000) + `">]><a>` +
			strings.Repeat("&x;", 2_000) + `</a>`, "declares entities, of 1000 bytes for 2000 places"},
		{"long", strings.Repeat(" ", xsd.MaxDocument+1), "more than 33554432 bytes"},
		{"cut off", "<a><b>", "not well-formed"},
		{"nothing", "", "not well-formed"},
		{"two roots", "<a/><b/>", "not well-formed"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			_, err := xsd.ParseDocument("a.xsd", []byte(tc.text))
			assert.ErrorContains(t, err, tc.problem)
		})
	}
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `a%d="" `, i)
	}
	return b.String()
}

// A group that uses another twice, and so on, does not grow without end.
func TestGroupsThatMultiply(t *testing.T) {
	content := `<xs:element name="e"><xs:complexType><xs:group ref="t:g0"/></xs:complexType></xs:element>`
	for i := range 60 {
		content += fmt.Sprintf(`<xs:group name="g%d"><xs:sequence><xs:group ref="t:g%d"/><xs:group ref="t:g%d"/>
			</xs:sequence></xs:group>`,
			i, i+1, i+1)
	}
	content += `<xs:group name="g60"><xs:sequence><xs:element name="a"/></xs:sequence></xs:group>`
	s := load(t, files{"a.xsd": schema(target, content)})
	var reach xsd.Reach
	reach.Element(s.Element(name("e")))
	require.NotEmpty(t, reach.Problems)
	assert.Contains(t, reach.Problems[0].Error(), "particles")
}

// Descriptions that are made to multiply are refused where they do, in bounded time.
func TestTypesThatMultiply(t *testing.T) {
	chain := func(n int, of func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(of(i))
		}
		return b.String()
	}
	for _, tc := range []struct{ what, content, problem string }{
		{"unions", chain(60, func(i int) string {
			return fmt.Sprintf(`<xs:simpleType name="u%d"><xs:union memberTypes="t:u%d t:u%d"/></xs:simpleType>`, i,
				i+1, i+1)
		}) + `<xs:simpleType name="u60"><xs:restriction base="xs:int"/></xs:simpleType>
			<xs:element name="e" type="t:u0"/>`,
			"a union of more than 20000 types"},
		{"attribute groups", chain(60, func(i int) string {
			return fmt.Sprintf(`<xs:attributeGroup name="g%d"><xs:attributeGroup ref="t:g%d"/>
				<xs:attributeGroup ref="t:g%d"/></xs:attributeGroup>`, i, i+1, i+1)
		}) + `<xs:attributeGroup name="g60"/><xs:element name="e"><xs:complexType><xs:attributeGroup ref="t:g0"/>
			</xs:complexType></xs:element>`, "more than 20000 particles"},
		{"extensions", chain(3000, func(i int) string {
			return fmt.Sprintf(`<xs:complexType name="x%d"><xs:complexContent><xs:extension base="t:x%d"><xs:sequence>
				<xs:element name="e%d"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>`, i, i+1, i)
		}) + `<xs:complexType name="x3000"/><xs:element name="e" type="t:x0"/>`,
			"more than 2000000 elements and groups"},
	} {
		s := load(t, files{"a.xsd": schema(target, tc.content)})
		var reach xsd.Reach
		reach.Element(s.Element(name("e")))
		var all []string
		for _, p := range append(reach.Problems, s.Problems...) {
			all = append(all, p.Error())
		}
		assert.Contains(t, strings.Join(all, "\n"), tc.problem, tc.what)
		xsd.Fingerprint(s.Element(name("e")))
	}
}

// Types that lead to each other over many steps are named in time that grows with them, and not
// with their square: as a chain, and in a circle.
func TestLongChains(t *testing.T) {
	const n = 5000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<xs:complexType name="c%d"><xs:sequence><xs:element name="e" type="t:c%d" minOccurs="0"/>
			</xs:sequence></xs:complexType>`, i, (i+1)%n)
	}
	circle := load(t, files{"a.xsd": schema(target, b.String()+`<xs:element name="e" type="t:c0"/>`)})
	one := load(t, files{"a.xsd": schema(target, `<xs:complexType name="c"><xs:sequence>
		<xs:element name="e" type="t:c" minOccurs="0"/></xs:sequence></xs:complexType>
		<xs:element name="e" type="t:c"/>`)})
	assert.Equal(t, xsd.Fingerprint(one.Element(name("e"))), xsd.Fingerprint(circle.Element(name("e"))))

	end := strings.Replace(b.String(), `type="t:c0" minOccurs="0"`, `type="xs:int"`, 1)
	chain := load(t, files{"a.xsd": schema(target, end+`<xs:element name="e" type="t:c0"/>`)})
	form := string(xsd.Canonical(chain.Element(name("e"))))
	assert.Equal(t, 2*n+4, strings.Count(form, "\n"), "each step of the chain is another type")
}
