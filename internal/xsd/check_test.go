package xsd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

// checked compares a message with the element e of a schema.
func checked(t *testing.T, content, message string) (found []string) {
	t.Helper()
	s := load(t, files{"a.xsd": schema(target, content)})
	e := s.Element(name("e"))
	require.NotNil(t, e)
	n, err := xsd.ParseMessage("m.xml", []byte(message))
	require.NoError(t, err)
	for _, m := range s.Check(e, n) {
		found = append(found, m.String())
	}
	return found
}

// behindWildcard has what XML Schema forbids, and descriptions in use have: b and c may be taken by
// the wildcard before them, d could only be behind c.
const behindWildcard = `<xs:element name="e"><xs:complexType><xs:sequence>
	<xs:sequence><xs:element name="a" type="xs:int"/><xs:any minOccurs="0" maxOccurs="unbounded" processContents="lax"/>
	</xs:sequence><xs:sequence><xs:choice minOccurs="0"><xs:element name="b" type="xs:int"/></xs:choice>
	<xs:element name="c" type="xs:int"/><xs:element name="d" type="xs:int" minOccurs="0"/></xs:sequence>
	</xs:sequence></xs:complexType></xs:element><xs:element name="d" type="xs:int"/>`

func TestChecks(t *testing.T) {
	const list = `<xs:element name="e"><xs:complexType><xs:sequence>
		<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:string" minOccurs="0" maxOccurs="2"/>
		<xs:choice minOccurs="0"><xs:element name="c" type="xs:date"/>
			<xs:element name="d" nillable="true" type="xs:int"/>
		</xs:choice></xs:sequence><xs:attribute name="x" type="xs:boolean" use="required"/></xs:complexType>
			</xs:element>`
	const open = `<e xmlns="urn:t" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" x="1">`
	for _, tc := range []struct{ what, content, message, wrong string }{
		{"it fits", list, open + `<a> 1 </a><b/><b>x</b><c>2026-01-01Z</c></e>`, ""},
		{"the least", list, open + `<a>-5</a></e>`, ""},
		{"nil", list, open + `<a>1</a><d xsi:nil="true"/></e>`, ""},
		{"nil, with an attribute", list, open + `<a>1</a><d xsi:nil="true" y="1"/></e>`,
			"e/d: the attribute y is not declared"},
		{"a bad value", list, open + `<a>1.5</a></e>`, `e/a: "1.5" is no int`},
		{"out of range", list, open + `<a>2147483648</a></e>`, `e/a: "2147483648" is no int`},
		{"missing", list, open + `<b/></e>`, "e: {urn:t}b, where {urn:t}a is expected"},
		{"missing at the end", list, open + `</e>`, "e: ends, where {urn:t}a is expected"},
		{"too many", list, open + `<a>1</a><b/><b/><b/></e>`, "e: {urn:t}b is too many, or not declared"},
		{"both of a choice", list, open + `<a>1</a><c>2026-01-01</c><d>1</d></e>`, "e: {urn:t}d is too many"},
		{"wrong namespace", list, open + `<a xmlns="">1</a></e>`, "e: a, where {urn:t}a is expected"},
		{"nil that must not be", list, open + `<a xsi:nil="1"/></e>`, "e/a: nil, and not nillable"},
		{"no attribute", list, `<e xmlns="urn:t"><a>1</a></e>`, "e: the attribute x is missing"},
		{"another attribute", list, strings.Replace(open, "x=", `y="" x=`, 1) + `<a>1</a></e>`,
			"the attribute y is not declared"},
		{"text between", list, open + `<a>1</a>text</e>`, `e: text "text" between elements`},
		{"a derived type with an attribute of an inline type", `<xs:element name="e" type="t:b"/>
			<xs:complexType name="b"/><xs:complexType name="d"><xs:complexContent><xs:extension base="t:b">
			<xs:attribute name="n"><xs:simpleType><xs:restriction base="xs:int"/></xs:simpleType></xs:attribute>
			</xs:extension></xs:complexContent></xs:complexType>`, e(` xsi:type="t:d" n="1"`, ""), ""},
		{"a type whose bases are a circle", `<xs:element name="e" type="t:b"/><xs:complexType name="b"/>
			<xs:complexType name="x"><xs:complexContent>
			<xs:extension base="t:y"/></xs:complexContent></xs:complexType><xs:complexType name="y"><xs:complexContent>
			<xs:extension base="t:x"/>
			</xs:complexContent></xs:complexType>`,
			e(` xsi:type="t:x"`, ""), "xsi:type {urn:t}x is not derived from its type"},
		{"simple types whose bases are a circle", `<xs:element name="e" type="t:b"/><xs:simpleType name="b">
			<xs:restriction base="xs:int"/></xs:simpleType><xs:simpleType name="x"><xs:restriction base="t:y"/>
			</xs:simpleType><xs:simpleType name="y"><xs:restriction base="t:x"/></xs:simpleType>`,
			e(` xsi:type="t:x"`, "1"), ""},
		{"elements in a value", list, open + `<a><b/></a></e>`, "e/a: {urn:t}b inside a value"},
		{"all, in any order", `<xs:element name="e"><xs:complexType><xs:all><xs:element name="a"/>
			<xs:element name="b"/>
			<xs:element name="c" minOccurs="0"/></xs:all></xs:complexType></xs:element>`,
			`<e xmlns="urn:t"><b/><a/></e>`, ""},
		{"all, one missing", `<xs:element name="e"><xs:complexType><xs:all><xs:element name="a"/>
			<xs:element name="b"/>
			</xs:all></xs:complexType></xs:element>`, `<e xmlns="urn:t"><b/></e>`, "where {urn:t}a is expected"},
		{"a type that is derived", `<xs:element name="e" type="t:base"/><xs:complexType name="base" abstract="true"/>
			<xs:complexType name="more"><xs:complexContent><xs:extension base="t:base"><xs:sequence>
			<xs:element name="a" type="xs:int"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>`,
			strings.Replace(open, `x="1"`, `xmlns:t="urn:t" xsi:type="t:more"`, 1) + `<a>1</a></e>`, ""},
		{"an abstract type", `<xs:element name="e" type="t:base"/><xs:complexType name="base" abstract="true"/>`,
			`<e xmlns="urn:t"/>`, "its type is abstract"},
		{"any element of others", `<xs:element name="e"><xs:complexType><xs:sequence><xs:any namespace="##other"
			processContents="lax" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>`,
			`<e xmlns="urn:t"><a xmlns="urn:a"/><b xmlns="urn:b"/></e>`, ""},
		{"elements of others that are not declared", `<xs:element name="e"><xs:complexType><xs:sequence><xs:any/>
			</xs:sequence></xs:complexType></xs:element>`, `<e xmlns="urn:t"><a xmlns="urn:a"/></e>`,
			"e/a: {urn:a}a is not declared, as any element here must be"},
		{"and are", `<xs:element name="e"><xs:complexType><xs:sequence><xs:any/></xs:sequence></xs:complexType>
			</xs:element><xs:element name="a" type="xs:int"/>`, `<e xmlns="urn:t"><a>x</a></e>`,
			`e/a: "x" is no int`},
		{"skipped", `<xs:element name="e"><xs:complexType><xs:sequence><xs:any processContents="skip"/></xs:sequence>
			</xs:complexType></xs:element><xs:element name="a" type="xs:int"/>`, `<e xmlns="urn:t"><a>x</a></e>`, ""},
		{"any type, and what is declared in it", `<xs:element name="e"/><xs:element name="a" type="xs:int"/>`,
			`<e xmlns="urn:t"><b xmlns="urn:b"><a xmlns="urn:t">x</a></b></e>`, `e/b/a: "x" is no int`},
		{"declared behind a wildcard", behindWildcard, e("", "<a>1</a><x xmlns='urn:o'/><b>2</b><c>3</c>"), ""},
		{"not what it is declared as", behindWildcard, e("", "<a>1</a><b>x</b><c>3</c>"), `e/b: "x" is no int`},
		{"behind what must be there", behindWildcard, e("", "<a>1</a><d/><c>3</c>"), "e/d: "},
		{"an attribute of others", `<xs:element name="e"><xs:complexType><xs:anyAttribute namespace="##any"/>
			</xs:complexType></xs:element>`, `<e xmlns="urn:t" xmlns:a="urn:a" a:b="1"/>`,
			"the attribute {urn:a}b is not declared, as any other here must be"},
		{"and a wrong value", `<xs:element name="e"><xs:complexType><xs:anyAttribute processContents="lax"/>
			</xs:complexType></xs:element><xs:attribute name="n" type="xs:int"/>`,
			`<e xmlns="urn:t" xmlns:t="urn:t" t:n="x"/>`, `{urn:t}n: "x" is no int`},
		{"attributes of the base, too", `<xs:element name="e" type="t:more"/><xs:complexType name="base">
			<xs:anyAttribute namespace="urn:a" processContents="lax"/></xs:complexType>
			<xs:complexType name="more"><xs:complexContent><xs:extension base="t:base">
			<xs:anyAttribute namespace="urn:b" processContents="lax"/></xs:extension></xs:complexContent>
			</xs:complexType>`,
			`<e xmlns="urn:t" xmlns:a="urn:a" a:b="1" xmlns:b="urn:b" b:b="1" xmlns:c="urn:c" c:c="1"/>`,
			"the attribute {urn:c}c is not declared"},
		{"what both groups allow", `<xs:element name="e"><xs:complexType><xs:attributeGroup ref="t:g"/>
			<xs:anyAttribute namespace="urn:a urn:b" processContents="lax"/></xs:complexType></xs:element>
			<xs:attributeGroup name="g"><xs:anyAttribute namespace="urn:b urn:c" processContents="lax"/>
			</xs:attributeGroup>`, `<e xmlns="urn:t" xmlns:b="urn:b" b:b="1" xmlns:a="urn:a" a:b="1"/>`,
			"the attribute {urn:a}b is not declared"},
		{"white space where nothing may be", `<xs:element name="e"><xs:complexType/></xs:element>`,
			`<e xmlns="urn:t"> </e>`, "e: white space, where nothing may be"},
		{"and where no element need be", `<xs:element name="e"><xs:complexType><xs:sequence>
			<xs:element name="a" minOccurs="0"/></xs:sequence></xs:complexType></xs:element>`,
			`<e xmlns="urn:t"> </e>`, ""},
		{"and of its own", `<xs:element name="e"><xs:complexType><xs:sequence><xs:any namespace="##other"/>
			</xs:sequence>
			</xs:complexType></xs:element>`, `<e xmlns="urn:t"><a/></e>`, "where any element is expected"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			found := checked(t, tc.content, tc.message)
			if tc.wrong == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			assert.Contains(t, found[0], tc.wrong)
			assert.Contains(t, found[0], "m.xml:1:")
		})
	}
}

func TestValues(t *testing.T) {
	for _, tc := range []struct{ typ, good, bad string }{
		{"boolean", "true 0", "TRUE yes"},
		{"decimal", "1 -1.50 +.5 5.", "1e3 . -"},
		{"float", "1e3 -INF NaN .5", "+INF 1e nan"},
		{"byte", "-128 127 +1", "128 1.0"},
		{"unsignedInt", "0 4294967295", "-1 4294967296"},
		{"positiveInteger", "1", "0"},
		{"dateTime", "2026-11-22T10:00:00Z 2026-11-22T24:00:00 -0001-01-01T00:00:00.5+14:00",
			"2026-11-22 2026-13-01T00:00:00"},
		{"duration", "P1D PT0.5S -P1Y2M", "P PT P1S 1D"},
		{"time", "10:00:00", "10:00 25:00:00"},
		{"gMonthDay", "--02-29", "02-29"},
		{"hexBinary", "0aFF", "0aF"},
		{"base64Binary", "YQ== YWI= YWJj", "YQ= a"},
		{"language", "de-CH", "deutschland de-"},
		{"NCName", "a.b _x", "1a a:b"},
		{"QName", "a:b b", "a:b:c"},
		{"NMTOKENS", "1a", "#"},
	} {
		content := `<xs:element name="e" type="xs:` + tc.typ + `"/>`
		for v := range strings.FieldsSeq(tc.good) {
			assert.Empty(t, checked(t, content, `<e xmlns="urn:t"> `+v+` </e>`), "%s %q", tc.typ, v)
		}
		for v := range strings.FieldsSeq(tc.bad) {
			assert.NotEmpty(t, checked(t, content, `<e xmlns="urn:t">`+v+`</e>`), "%s %q", tc.typ, v)
		}
	}
}

func TestFacets(t *testing.T) {
	for _, tc := range []struct{ restriction, good, bad string }{
		{`base="xs:string"><xs:enumeration value="a"/><xs:enumeration value="b"/>`, "a", "c"},
		{`base="xs:string"><xs:pattern value="[A-Z]\d{2}"/><xs:pattern value="x"/>`, "A12", "AA12"},
		{`base="xs:string"><xs:pattern value="\i\c*"/>`, "_a-1", "1a"},
		{`base="xs:string"><xs:minLength value="2"/><xs:maxLength value="3"/>`, "äöü", "a"},
		{`base="xs:int"><xs:minInclusive value="5"/><xs:maxExclusive value="10"/>`, "9", "10"},
		{`base="xs:decimal"><xs:totalDigits value="3"/><xs:fractionDigits value="1"/>`, "012.50", "1.25"},
		{`base="xs:hexBinary"><xs:length value="2"/>`, "0aff", "0a"},
		{`base="t:short"><xs:length value="2"/>`, "1 2", "1 2 3"},
		{`base="xs:date"><xs:minInclusive value="2026-01-01"/>`, "2026-01-01", "2025-12-31"},
		{`base="xs:dateTime"><xs:maxExclusive value="2026-01-01T00:00:00Z"/>`, "2026-01-01T00:30:00+01:00",
			"2025-12-31T23:30:00-01:00"},
		{`base="xs:time"><xs:maxInclusive value="12:00:00"/>`, "12:00:00Z", "12:00:00.5"},
		{`base="xs:gYear"><xs:minExclusive value="1999"/>`, "2000", "1999"},
		{`base="xs:gMonthDay"><xs:maxInclusive value="--06-30"/>`, "--06-30", "--07-01"},
		{`base="xs:gDay"><xs:minInclusive value="---15"/>`, "---15", "---14"},
		{`base="xs:duration"><xs:maxInclusive value="P1M"/>`, "P30D", "P32D"},
		{`base="xs:double"><xs:maxExclusive value="1e3"/>`, "-INF", "INF"},
	} {
		content := `<xs:element name="e" type="t:r"/><xs:simpleType name="short"><xs:list itemType="xs:short"/>
			</xs:simpleType>` +
			`<xs:simpleType name="r"><xs:restriction ` + tc.restriction + `</xs:restriction></xs:simpleType>`
		assert.Empty(t, checked(t, content, `<e xmlns="urn:t">`+tc.good+`</e>`), tc.restriction)
		assert.NotEmpty(t, checked(t, content, `<e xmlns="urn:t">`+tc.bad+`</e>`), tc.restriction)
	}
}
