package gocode_test

import (
	"bytes"
	"flag"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/gocode"
	"github.com/hhfr/hhfr/internal/wsdl"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden: the code of a description is the same each time.
func TestGolden(t *testing.T) {
	d, err := wsdl.Load(t.Context(), filepath.Join("testdata", "stock.wsdl"), wsdl.SourceOptions{Texts: true})
	require.NoError(t, err)
	p := formed(t, d, gocode.GoOptions{Package: "stock"})
	assert.Empty(t, p.Refused)
	golden := filepath.Join("testdata", "stock.go.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, p.Source, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(p.Source))
	for range 5 {
		again, err := wsdl.Load(t.Context(), filepath.Join("testdata", "stock.wsdl"), wsdl.SourceOptions{Texts: true})
		require.NoError(t, err)
		assert.Equal(t, string(want), string(formed(t, again, gocode.GoOptions{Package: "stock"}).Source))
	}
}

// operation is a WSDL with one operation, whose request is an element of this content; more are
// further components of the schema.
func operation(content, more string) string {
	return `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema"
		xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:t="urn:t" targetNamespace="urn:t"><types>
		<xs:schema targetNamespace="urn:t" elementFormDefault="qualified"><xs:element name="Do">` + content +
		`</xs:element>` + more + `</xs:schema></types>
		<message name="in"><part name="p" element="t:Do"/></message>
		<portType name="P"><operation name="Do"><input message="t:in"/></operation></portType>
		<binding name="B" type="t:P"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
		<operation name="Do"><soap:operation soapAction="do"/><input><soap:body use="literal"/></input></operation>
		</binding></definitions>`
}

// TestContents: what a content model becomes, and what of it is not carried or refused.
func TestContents(t *testing.T) {
	sequence := func(inside string) string {
		return `<xs:complexType><xs:sequence>` + inside + `</xs:sequence></xs:complexType>`
	}
	element := func(name, more string) string { return `<xs:element name="` + name + `" ` + more + `/>` }
	str := `type="xs:string"`
	for _, c := range []struct {
		name, content, more string
		has                 []string // lines of the file, without their alignment
		notes, refused      string
	}{
		{name: "optional, repeated, nil",
			content: sequence(element("a", str+` minOccurs="0"`) + element("b", str+` maxOccurs="3"`) +
				element("c", `type="xs:int" nillable="true"`) + element("d", str+` nillable="true" maxOccurs="2"`)),
			has: []string{"A *string `xml:\"urn:t a,omitempty\"`", "B []string `xml:\"urn:t b\"`",
				"C *int32 `xml:\"urn:t c\" soap:\"nil\"`", "D []*string `xml:\"urn:t d\" soap:\"nil\"`"}},
		{name: "optional and nil", content: sequence(element("a", str+` nillable="true" minOccurs="0"`)),
			has: []string{"A *string `xml:\"urn:t a,omitempty\"`"}, notes: "whether it is absent or nil: a"},
		{name: "numbers",
			content: sequence(element("a", `type="xs:integer"`) + element("b", `type="xs:unsignedLong"`) +
				element("c", `type="xs:unsignedByte" maxOccurs="9"`) + element("d", `type="t:padded"`)),
			more: `<xs:simpleType name="padded"><xs:restriction base="xs:int"><xs:pattern value="\d{4}"/>
				</xs:restriction></xs:simpleType>`,
			has: []string{"A string `xml:\"urn:t a\"` // xs:integer", "B uint64 `xml:\"urn:t b\"`",
				"C []uint16 `xml:\"urn:t c\"`", "D string `xml:\"urn:t d\"` // xs:int with a pattern"}},
		{name: "names of Go",
			content: sequence(element("type", str) + element("a-b", str) + element("a.b", str) + element("_1", str) +
				element("été", str) + element("日本", str) + element("XMLName", str)),
			has: []string{"Type string `xml:\"urn:t type\"`", "AB string `xml:\"urn:t a-b\"`",
				"ABElement string `xml:\"urn:t a.b\"`", "X1 string `xml:\"urn:t _1\"`",
				"Été string `xml:\"urn:t été\"`",
				"X日本 string `xml:\"urn:t 日本\"`", "XMLNameElement string `xml:\"urn:t XMLName\"`"}},
		{name: "names of types that are taken",
			content: sequence(element("a", `type="t:Do"`) + element("b", `type="t:Client"`) +
				element("c", `type="t:do"`)),
			more: `<xs:complexType name="Do"/><xs:complexType name="do"/>
				<xs:complexType name="Client"><xs:sequence/></xs:complexType>`,
			has: []string{"A DoType `xml:\"urn:t a\"`", "B ClientType `xml:\"urn:t b\"`", "C DoType2 `xml:\"urn:t c\"`",
				"type DoType2 struct {"}},
		{name: "attributes",
			content: `<xs:complexType><xs:sequence>` + element("id", str) + `</xs:sequence>
				<xs:attribute name="id" type="xs:int"/><xs:attribute name="kind" use="required"><xs:simpleType>
				<xs:restriction base="xs:string"><xs:enumeration value="a+b"/><xs:enumeration value=""/>
				<xs:enumeration value="-"/><xs:enumeration value="-1"/><xs:enumeration value="1"/>
				</xs:restriction></xs:simpleType></xs:attribute></xs:complexType>`,
			has: []string{"IdAttr *int32 `xml:\"id,attr,omitempty\"`", "Id string `xml:\"urn:t id\"`",
				"Kind DoKind `xml:\"kind,attr\"`", `DoKindAB DoKind = "a+b"`, `DoKindEmpty DoKind = ""`,
				`DoKindMinus DoKind = "-"`, `DoKindMinus1 DoKind = "-1"`, `DoKind1 DoKind = "1"`}},
		{name: "anonymous types",
			content: sequence(`<xs:element name="Do">` + sequence(`<xs:element name="Do">`+sequence(element("x", str))+
				`</xs:element>`) + `</xs:element>`),
			has: []string{"Do DoDo `xml:\"urn:t Do\"`", "Do DoDoDo `xml:\"urn:t Do\"`"}},
		{name: "a type that contains itself", content: sequence(element("list", `type="t:List"`)),
			more: `<xs:complexType name="List"><xs:sequence>` + element("next", `type="t:List" minOccurs="0"`) +
				`</xs:sequence></xs:complexType>`,
			has: []string{"List List `xml:\"urn:t list\"`", "Next *List `xml:\"urn:t next,omitempty\"`"}},
		{name: "an element that contains itself in any case", content: sequence(`<xs:element ref="t:Do"/>`),
			refused: "contains itself in any case"},
		{name: "a choice",
			content: `<xs:complexType><xs:choice>` + element("a", str) + `<xs:sequence>` + element("b", str) +
				element("c", str) + `</xs:sequence></xs:choice></xs:complexType>`,
			has: []string{"// One of these is set: A; B with C.", "A *string `xml:\"urn:t a,omitempty\"`"}},
		{name: "a choice of orders",
			content: `<xs:complexType><xs:choice><xs:sequence>` + element("a", str) + element("c", str) +
				`</xs:sequence><xs:sequence>` + element("b", str) + element("c", str) +
				`</xs:sequence></xs:choice></xs:complexType>`,
			has: []string{"// One of these is set: A with C; B with C.", "C *string `xml:\"urn:t c,omitempty\"`"}},
		{name: "a choice that repeats",
			content: `<xs:complexType><xs:choice maxOccurs="unbounded">` + element("a", str) + element("b", str) +
				`</xs:choice></xs:complexType>`,
			has:   []string{"// A choice that repeats: A; B.", "A []string `xml:\"urn:t a\"`"},
			notes: "the order among a and other elements"},
		{name: "a group that repeats",
			content: `<xs:complexType><xs:sequence maxOccurs="2">` + element("a", str) + element("b", str) +
				`</xs:sequence></xs:complexType>`,
			refused: "elements that repeat as a group, from a on"},
		{name: "two places", content: sequence(element("a", str) + element("b", str) + element("a", str)),
			refused: "elements of one name with others between them"},
		{name: "twice", content: sequence(element("a", str) + element("a", str+` minOccurs="0"`)),
			has: []string{"A []string `xml:\"urn:t a\"`"}},
		{name: "wildcards",
			content: `<xs:complexType><xs:sequence>` + element("a", str) + `<xs:any minOccurs="0"/></xs:sequence>
				<xs:anyAttribute/></xs:complexType>`,
			has:   []string{"// Not carried: attributes of any name; elements of any name."},
			notes: "elements of any name"},
		{name: "a wildcard that must be there", content: sequence(`<xs:any/>`), refused: "elements of any name"},
		{name: "anything, optional", content: sequence(element("a", str) + element("b", `minOccurs="0"`)),
			has:   []string{"// Not carried: b of element Do: b, of any content (xs:anyType)."},
			notes: "b of element Do"},
		{name: "anything", content: sequence(element("b", ``)), refused: "b, of any content (xs:anyType)"},
		{name: "anything in a branch",
			content: `<xs:complexType><xs:choice><xs:sequence>` + element("a", str) + element("b", ``) +
				`</xs:sequence>` + element("c", str) + `</xs:choice></xs:complexType>`,
			has:   []string{"C *string `xml:\"urn:t c,omitempty\"`"},
			notes: "a of element Do: a branch of a choice that cannot be carried"},
		{name: "a substitution group", content: sequence(`<xs:element ref="t:head" maxOccurs="2"/>`),
			more: `<xs:element name="head" abstract="true" type="xs:string"/>` +
				element("x", `substitutionGroup="t:head" type="xs:token"`) + element("y", `substitutionGroup="t:head"`),
			has:   []string{"X []string `xml:\"urn:t x\"` // xs:token", "Y []string `xml:\"urn:t y\"`"},
			notes: "the order among x and other elements"},
		{name: "an abstract type", content: sequence(element("a", `type="t:A"`)),
			more:    `<xs:complexType name="A" abstract="true"/>`,
			refused: "the type {urn:t}A, which is abstract"},
		{name: "extension and restriction", content: sequence(element("a", `type="t:B"`) + element("c", `type="t:C"`)),
			more: `<xs:complexType name="A"><xs:sequence>` + element("x", str+` minOccurs="0"`) +
				`</xs:sequence></xs:complexType>
				<xs:complexType name="B"><xs:complexContent><xs:extension base="t:A"><xs:sequence>` +
				element("y", str) +
				`</xs:sequence></xs:extension></xs:complexContent></xs:complexType>
				<xs:complexType name="C"><xs:complexContent><xs:restriction base="t:A"><xs:sequence>` +
				element("x", str) +
				`</xs:sequence></xs:restriction></xs:complexContent></xs:complexType>`,
			has: []string{"X *string `xml:\"urn:t x,omitempty\"`", "Y string `xml:\"urn:t y\"`",
				"X string `xml:\"urn:t x\"`"}},
		{name: "mixed content", content: `<xs:complexType mixed="true"><xs:sequence>` + element("b", str) +
			`</xs:sequence></xs:complexType>`,
			notes: "text between elements", has: []string{"B string `xml:\"urn:t b\"`"}},
		{name: "a namespace that is none of a tag", content: sequence(element("a", str)),
			more: `<xs:element name="z"/>`, has: []string{"A string `xml:\"urn:t a\"`"}},
		{name: "comments", content: `<xs:annotation><xs:documentation>go:build ignore
			` + "\ufeff" + ` <b>more</b> */ text</xs:documentation></xs:annotation>` + sequence(element("a", str)),
			has: []string{"// go:build ignore more */ text"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := generate(t, operation(c.content, c.more))
			if c.refused != "" {
				require.Len(t, p.Refused, 1)
				assert.Contains(t, p.Refused[0].String(), c.refused)
				assert.Nil(t, p.Source)
				return
			}
			require.Empty(t, p.Refused)
			text := oneSpace(string(p.Source))
			for _, line := range c.has {
				assert.Contains(t, text, line)
			}
			if c.notes != "" {
				assert.Contains(t, notesOf(p), c.notes)
			} else {
				assert.Empty(t, notesOf(p))
			}
		})
	}
}

func generate(t *testing.T, text string) *gocode.GoProgram {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.wsdl")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{Texts: true})
	require.NoError(t, err)
	return formed(t, d, gocode.GoOptions{Package: "service"})
}

// formed generates, and checks that what comes of it is Go, as gofmt has it.
func formed(t *testing.T, d *wsdl.ServiceDescription, opt gocode.GoOptions) *gocode.GoProgram {
	t.Helper()
	p := gocode.Generate(d, opt)
	if p.Source != nil {
		want, err := format.Source(p.Source)
		require.NoError(t, err)
		if !bytes.Equal(want, p.Source) {
			require.Equal(t, string(want), string(p.Source))
		}
	}
	return p
}

// TestComments: texts of descriptions that gofmt would take for headings, links, lists, directives
// and quotes are as it has them.
func TestComments(t *testing.T) {
	for _, text := range []string{
		"First.\n\nA Heading\n\nLast.", "# One\n\n# Two\n\nText", "- a\n- b\n\n1. c\n\n  - d",
		"[a]: http://a.example/\n\n[b]: http://b.example/", "[a]: http://a.example/", "``quoted'' ```code``` '''",
		"go:build none\n\n+build none", "line one.go:1", "a {\n\n\tb\n}", strings.Repeat("long", 40) + " {\n x",
		"*/ /* // \u00a0\u2028\u200b", "Deprecated: not any more\n\nX", "日本語\n\nÉté\n\n\t", "[Client] and [xml.Name]",
	} {
		documented := `<xs:annotation><xs:documentation>` + strings.ReplaceAll(text, "<", "&lt;") +
			`</xs:documentation></xs:annotation>`
		p := generate(t, strings.Replace(operation(documented+`<xs:complexType>`+documented+`<xs:sequence>
			<xs:element name="a" type="xs:string"/><xs:element name="longer" type="xs:int" nillable="true">`+documented+
			`</xs:element><xs:element name="c" type="xs:date"/></xs:sequence></xs:complexType>`, ""),
			`<operation name="Do"><input m`, `<operation name="Do"><documentation>`+text+`</documentation><input m`, 1))
		require.NotNil(t, p.Source, text)
	}
}

func notesOf(p *gocode.GoProgram) string {
	var list []string
	for _, l := range p.Notes {
		list = append(list, l.What)
	}
	return strings.Join(list, "\n")
}

// oneSpace is a text whose lines have single spaces.
func oneSpace(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}
