package xsd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

const base = `<xs:element name="e"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int"/>` +
	`<xs:element name="b" type="xs:string" minOccurs="0"/></xs:sequence><xs:attribute name="x" type="xs:int"/>` +
	`<xs:attribute name="y" type="xs:string" use="required"/></xs:complexType></xs:element>`

// How a description is written makes no difference; what it describes does.
func TestFingerprints(t *testing.T) {
	of := func(f files) [32]byte {
		e := load(t, f).Element(name("e"))
		require.NotNil(t, e)
		return xsd.Fingerprint(e)
	}
	first := of(files{"a.xsd": schema(target, base)})
	for _, tc := range []struct {
		what string
		f    files
	}{
		{"named types", files{"a.xsd": schema(target,
			`<xs:complexType name="n"><xs:sequence><xs:element name="a" type="t:i"/>`+
				`<xs:element name="b" type="xs:string" minOccurs="0"/></xs:sequence>
					<xs:attribute name="x" type="t:i"/>`+
				`<xs:attribute name="y" type="xs:string" use="required"/></xs:complexType>
					<xs:element name="e" type="t:n"/>`+
				`<xs:simpleType name="i"><xs:restriction base="xs:int"/></xs:simpleType>`)}},
		{"another prefix, and documentation",
			files{"a.xsd": `<schema xmlns="http://www.w3.org/2001/XMLSchema" xmlns:q="urn:t" ` +
				`targetNamespace="urn:t" elementFormDefault="qualified"><annotation>
					<documentation>d</documentation></annotation>` +
				`<element name="e"><complexType><sequence><element name="a" type="int"/>
					<element name="b" type="string" minOccurs="0"/>` +
				`</sequence><attribute name="x" type="int"/><attribute name="y" type="string" use="required"/>
					</complexType></element></schema>`}},
		{"attributes in another order", files{"a.xsd": schema(target,
			`<xs:element name="e"><xs:complexType><xs:sequence>`+
				`<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:string" minOccurs="0"/>
					</xs:sequence>`+
				`<xs:attribute name="y" type="xs:string" use="required"/><xs:attribute name="x" type="xs:int"/>
					</xs:complexType></xs:element>`)}},
		{"groups, and sequences in sequences", files{"a.xsd": schema(target,
			`<xs:element name="e"><xs:complexType><xs:sequence>`+
				`<xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence><xs:group ref="t:g"/></xs:sequence>`+
				`<xs:attributeGroup ref="t:ag"/></xs:complexType></xs:element>`+
				`<xs:group name="g"><xs:sequence><xs:element name="b" type="xs:string" minOccurs="0"/>
					</xs:sequence></xs:group>`+
				`<xs:attributeGroup name="ag"><xs:attribute name="x" type="xs:int"/>
					<xs:attribute name="y" type="xs:string" use="required"/>`+
				`</xs:attributeGroup>`)}},
		{"references to global elements, in another document", files{"a.xsd": schema(target,
			`<xs:include schemaLocation="b.xsd"/>`+
				`<xs:element name="e"><xs:complexType><xs:sequence><xs:element ref="t:a"/>
					<xs:element ref="t:b" minOccurs="0"/></xs:sequence>`+
				`<xs:attribute name="x" type="xs:int"/><xs:attribute name="y" type="xs:string" use="required"/>
					</xs:complexType></xs:element>`),
			"b.xsd": schema("", `<xs:element name="b" type="xs:string"/><xs:element name="a" type="xs:int"/>`)}},
	} {
		t.Run("the same: "+tc.what, func(t *testing.T) { assert.Equal(t, first, of(tc.f)) })
	}
	for _, tc := range []struct{ what, from, to, difference string }{
		{"type", `"a" type="xs:int"`, `"a" type="xs:long"`, "e/a: int became long"},
		{"name", `"a" type`, `"c" type`, "e: {urn:t}a became {urn:t}c"},
		{"occurrence", `minOccurs="0"`, `minOccurs="0" maxOccurs="2"`, "e/b: 0..1 became 0..2"},
		{"order", `<xs:sequence>`, `<xs:sequence><xs:element name="z"/>`, "e: {urn:t}z added"},
		{"one more", `</xs:sequence>`, `<xs:element name="z"/></xs:sequence>`, "e: {urn:t}z added"},
		{"attribute", `name="x" type="xs:int"`, `name="x" type="xs:byte"`, "e/@x: int became byte"},
		{"attribute's use", ` use="required"`, ``, "e/@y: required true became false"},
		{"nillable", `"a" type`, `"a" nillable="true" type`, "e/a: nillable false became true"},
		{"default", `"a" type`, `"a" default="1" type`, "e/a: the default changed"},
		{"choice", `sequence`, `choice`, "e: another content model"},
		{"mixed", `<xs:complexType>`, `<xs:complexType mixed="true">`, "e: elements became text with elements"},
	} {
		t.Run("another: "+tc.what, func(t *testing.T) {
			f := files{"a.xsd": schema(target, strings.ReplaceAll(base, tc.from, tc.to))}
			assert.NotEqual(t, first, of(f))
			assert.Equal(t, tc.difference, xsd.Difference(
				load(t, files{"a.xsd": schema(target, base)}).Element(name("e")), load(t, f).Element(name("e"))))
		})
	}
	assert.Empty(t, xsd.Difference(load(t, files{"a.xsd": schema(target, base)}).Element(name("e")),
		load(t, files{"a.xsd": schema(target, base)}).Element(name("e"))))
}

// A type that contains itself is the same whether it is unrolled once or not.
func TestFingerprintsOfRecursion(t *testing.T) {
	const tree = `<xs:complexType name="tree"><xs:sequence>
		<xs:element name="child" type="t:tree" minOccurs="0"/></xs:sequence></xs:complexType>`
	const unrolled = `<xs:complexType name="tree"><xs:sequence>
		<xs:element name="child" type="t:other" minOccurs="0"/></xs:sequence></xs:complexType>` +
		`<xs:complexType name="other"><xs:sequence><xs:element name="child" type="t:tree" minOccurs="0"/>
			</xs:sequence></xs:complexType>`
	const e = `<xs:element name="e" type="t:tree"/>`
	of := func(content string) [32]byte {
		return xsd.Fingerprint(load(t, files{"a.xsd": schema(target, content)}).Element(name("e")))
	}
	assert.Equal(t, of(e+tree), of(e+unrolled))
}
