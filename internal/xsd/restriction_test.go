package xsd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

// restrictionCase is a schema with an element e that has a type r, or consists of it, which
// restricts a type b.
type restrictionCase struct {
	what, text string
	// wrong is what is said of it; "": nothing.
	wrong string
}

// faceted restricts a simple type twice.
func faceted(of, base, own string) string {
	return fmt.Sprintf(`<xs:element name="e" type="t:r"/><xs:simpleType name="b"><xs:restriction base="%s">%s`+
		`</xs:restriction></xs:simpleType><xs:simpleType name="r"><xs:restriction base="t:b">%s</xs:restriction>`+
		`</xs:simpleType>`, of, base, own)
}

// narrowed restricts a complex type.
func narrowed(base, own string) string {
	return fmt.Sprintf(`<xs:element name="e" type="t:r"/><xs:complexType name="b">%s</xs:complexType>`+
		`<xs:complexType name="r"><xs:complexContent><xs:restriction base="t:b">%s</xs:restriction>`+
		`</xs:complexContent></xs:complexType>`, base, own)
}

// narrowedText restricts a complex type with simple content.
func narrowedText(base, own string) string {
	return fmt.Sprintf(`<xs:element name="e" type="t:r"/><xs:complexType name="b"><xs:simpleContent>`+
		`<xs:extension base="xs:int">%s</xs:extension></xs:simpleContent></xs:complexType>`+
		`<xs:complexType name="r"><xs:simpleContent><xs:restriction base="t:b">%s</xs:restriction>`+
		`</xs:simpleContent></xs:complexType>`, base, own)
}

// simpleRestrictions are restrictions of simple types.
func simpleRestrictions() []restrictionCase {
	return []restrictionCase{
		{"a shorter length", faceted("xs:string", `<xs:maxLength value="9"/>`, `<xs:maxLength value="8"/>`), ""},
		{"a longer length", faceted("xs:string", `<xs:maxLength value="9"/>`, `<xs:maxLength value="10"/>`),
			"maxLength 10, which is not less than its base allows"},
		{"less than the least length", faceted("xs:string", `<xs:minLength value="3"/>`, `<xs:minLength value="2"/>`),
			"minLength 2"},
		{"a maximum below the minimum of the base",
			faceted("xs:string", `<xs:minLength value="3"/>`, `<xs:maxLength value="2"/>`), "maxLength 2"},
		{"another length", faceted("xs:string", `<xs:length value="3"/>`, `<xs:length value="4"/>`), "length 4"},
		{"the same length", faceted("xs:string", `<xs:length value="3"/>`, `<xs:length value="3"/>`), ""},
		{"a smaller range", faceted("xs:int", `<xs:minInclusive value="1"/><xs:maxInclusive value="9"/>`,
			`<xs:minInclusive value="+2"/><xs:maxExclusive value="9"/>`), ""},
		{"a greater maximum", faceted("xs:int", `<xs:maxInclusive value="9"/>`, `<xs:maxInclusive value="10"/>`),
			"maxInclusive 10"},
		{"a minimum below what is excluded",
			faceted("xs:int", `<xs:minExclusive value="5"/>`, `<xs:minInclusive value="5"/>`), "minInclusive 5"},
		{"a limit that is no value of the type", faceted("xs:int", ``, `<xs:maxInclusive value="3000000000"/>`),
			`"3000000000" is no int`},
		{"a limit that is no number", faceted("xs:decimal", ``, `<xs:minInclusive value="few"/>`),
			`"few" is no decimal`},
		{"a range without values",
			faceted("xs:int", ``, `<xs:minInclusive value="5"/><xs:maxInclusive value="4"/>`), "above the greatest"},
		{"a range of doubles", faceted("xs:double", `<xs:maxInclusive value="1e3"/>`,
			`<xs:maxInclusive value="999"/>`), ""},
		{"a greater double", faceted("xs:double", `<xs:maxInclusive value="1e3"/>`, `<xs:maxInclusive value="INF"/>`),
			"maxInclusive INF"},
		{"an earlier date", faceted("xs:date", `<xs:minInclusive value="2026-01-01"/>`,
			`<xs:minInclusive value="2025-12-31"/>`), "minInclusive 2025-12-31"},
		{"a later date", faceted("xs:date", `<xs:minInclusive value="2026-01-01"/>`,
			`<xs:minInclusive value="2026-01-02"/>`), ""},
		{"a longer duration", faceted("xs:duration", `<xs:maxInclusive value="P1Y"/>`,
			`<xs:maxInclusive value="P13M"/>`),
			"maxInclusive P13M"},
		{"fewer digits", faceted("xs:decimal", `<xs:totalDigits value="5"/><xs:fractionDigits value="2"/>`,
			`<xs:totalDigits value="4"/><xs:fractionDigits value="1"/>`), ""},
		{"more digits", faceted("xs:decimal", `<xs:totalDigits value="5"/>`, `<xs:totalDigits value="6"/>`),
			"totalDigits 6"},
		{"more digits behind the point",
			faceted("xs:decimal", `<xs:fractionDigits value="2"/>`, `<xs:fractionDigits value="3"/>`),
			"fractionDigits 3"},
		{"fewer values", faceted("xs:string", `<xs:enumeration value="a"/><xs:enumeration value="b"/>`,
			`<xs:enumeration value="b"/>`), ""},
		{"a new value", faceted("xs:string", `<xs:enumeration value="a"/>`, `<xs:enumeration value="b"/>`),
			"a value that its base does not allow"},
		{"a value that the type does not have", faceted("xs:int", ``, `<xs:enumeration value="one"/>`),
			`"one" is no int`},
		{"a value that does not match the pattern",
			faceted("xs:string", `<xs:pattern value="[a-z]+"/>`, `<xs:enumeration value="A"/>`), "does not match"},
		{"less white space", faceted("xs:string", `<xs:whiteSpace value="replace"/>`,
			`<xs:whiteSpace value="collapse"/>`),
			""},
		{"more white space", faceted("xs:token", ``, `<xs:whiteSpace value="preserve"/>`), "whiteSpace preserve"},
		{"a facet that the type does not have", faceted("xs:int", ``, `<xs:maxLength value="4"/>`),
			"int has no facet maxLength"},
		{"digits of a double", faceted("xs:double", ``, `<xs:totalDigits value="4"/>`),
			"double has no facet totalDigits"},
		{"a range of strings", faceted("xs:string", ``, `<xs:maxInclusive value="x"/>`),
			"string has no facet maxInclusive"},
		{"a fixed facet", faceted("xs:string", `<xs:maxLength value="9" fixed="true"/>`, `<xs:maxLength value="8"/>`),
			"maxLength 8"},
		{"a fixed facet as it was",
			faceted("xs:string", `<xs:maxLength value="9" fixed="true"/>`, `<xs:maxLength value="9"/>`), ""},
		{"a list with fewer items",
			`<xs:element name="e" type="t:r"/><xs:simpleType name="b"><xs:list itemType="xs:int"/>` +
				`</xs:simpleType><xs:simpleType name="r"><xs:restriction base="t:b"><xs:maxLength value="2"/>` +
				`</xs:restriction></xs:simpleType>`, ""},
		{"a range of a list", `<xs:element name="e" type="t:r"/><xs:simpleType name="b"><xs:list itemType="xs:int"/>` +
			`</xs:simpleType><xs:simpleType name="r"><xs:restriction base="t:b"><xs:maxInclusive value="2"/>` +
			`</xs:restriction></xs:simpleType>`, "has no facet maxInclusive"},
		{"a union with a length", `<xs:element name="e" type="t:r"/><xs:simpleType name="b"><xs:union ` +
			`memberTypes="xs:int xs:date"/></xs:simpleType><xs:simpleType name="r"><xs:restriction base="t:b">` +
			`<xs:length value="2"/></xs:restriction></xs:simpleType>`, "has no facet length"},
	}
}

// attributeRestrictions are restrictions of attributes and of simple content.
func attributeRestrictions() []restrictionCase {
	return []restrictionCase{
		{"an optional attribute that is required", narrowed(`<xs:attribute name="a" type="xs:int"/>`,
			`<xs:attribute name="a" type="xs:int" use="required"/>`), ""},
		{"a required attribute that is optional", narrowed(`<xs:attribute name="a" type="xs:int" use="required"/>`,
			`<xs:attribute name="a" type="xs:int"/>`), "the attribute a is required there"},
		{"an optional attribute that is prohibited", narrowed(`<xs:attribute name="a" type="xs:int"/>`,
			`<xs:attribute name="a" use="prohibited"/>`), ""},
		{"a required attribute that is prohibited", narrowed(`<xs:attribute name="a" type="xs:int" use="required"/>`,
			`<xs:attribute name="a" use="prohibited"/>`), "the attribute a is required there"},
		{"a new attribute", narrowed(``, `<xs:attribute name="a" type="xs:int"/>`), "that has no attribute a"},
		{"a new attribute that a wildcard allows", narrowed(`<xs:anyAttribute/>`,
			`<xs:attribute name="a" type="xs:int"/>`), ""},
		{"a new attribute that the wildcard does not allow", narrowed(`<xs:anyAttribute namespace="##other"/>`,
			`<xs:attribute name="a" type="xs:int"/>`), "that has no attribute a"},
		{"an attribute of a derived type", narrowed(`<xs:attribute name="a" type="xs:integer"/>`,
			`<xs:attribute name="a" type="xs:byte"/>`), ""},
		{"an attribute of another type", narrowed(`<xs:attribute name="a" type="xs:int"/>`,
			`<xs:attribute name="a" type="xs:string"/>`), "the type of the attribute a is not derived"},
		{"an attribute with an inline type", narrowed(`<xs:attribute name="a" type="xs:int"/>`,
			`<xs:attribute name="a"><xs:simpleType><xs:restriction base="xs:int"><xs:maxInclusive value="3"/>`+
				`</xs:restriction></xs:simpleType></xs:attribute>`), ""},
		{"an attribute of a member of a union", narrowed(`<xs:attribute name="a"><xs:simpleType><xs:union `+
			`memberTypes="xs:int xs:date"/></xs:simpleType></xs:attribute>`,
			`<xs:attribute name="a" type="xs:int"/>`), ""},
		{"an attribute that had any type", narrowed(`<xs:attribute name="a"/>`,
			`<xs:attribute name="a" type="xs:int"/>`), ""},
		{"a fixed attribute with another value", narrowed(`<xs:attribute name="a" type="xs:int" fixed="1"/>`,
			`<xs:attribute name="a" type="xs:int" fixed="2"/>`), `the attribute a is always "1" there`},
		{"a fixed attribute that is free", narrowed(`<xs:attribute name="a" type="xs:int" fixed="1"/>`,
			`<xs:attribute name="a" type="xs:int"/>`), `the attribute a is always "1" there`},
		{"a free attribute that is fixed", narrowed(`<xs:attribute name="a" type="xs:int"/>`,
			`<xs:attribute name="a" type="xs:int" fixed="1"/>`), ""},
		{"a new wildcard", narrowed(``, `<xs:anyAttribute/>`), "that has no anyAttribute"},
		{"a narrower wildcard", narrowed(`<xs:anyAttribute namespace="##other"/>`,
			`<xs:anyAttribute namespace="urn:x urn:y"/>`), ""},
		{"a wider wildcard", narrowed(`<xs:anyAttribute namespace="urn:x"/>`, `<xs:anyAttribute namespace="##other"/>`),
			"the anyAttribute there allows less"},
		{"a wildcard that is compared less strictly", narrowed(`<xs:anyAttribute processContents="strict"/>`,
			`<xs:anyAttribute processContents="skip"/>`), "the anyAttribute there allows less"},
		{"text with a smaller range", narrowedText(``, `<xs:maxInclusive value="3"/>`), ""},
		{"text with an inline type", narrowedText(``, `<xs:simpleType><xs:restriction base="xs:int">`+
			`<xs:minInclusive value="3"/></xs:restriction></xs:simpleType>`), ""},
		{"text of another type", narrowedText(``, `<xs:simpleType><xs:restriction base="xs:string"/></xs:simpleType>`),
			"string is not derived from int"},
		{"text beyond the range", narrowedText(``, `<xs:maxInclusive value="9999999999"/>`), "is no int"},
		{"text with a required attribute that is optional", narrowedText(
			`<xs:attribute name="a" type="xs:int" use="required"/>`, `<xs:attribute name="a" type="xs:int"/>`),
			"the attribute a is required there"},
		{"no content, where elements are needed", narrowed(`<xs:sequence><xs:element name="a"/></xs:sequence>`, ``),
			"nothing may come at the beginning, where that needs {urn:t}a"},
		{"no content, where elements may be absent",
			narrowed(`<xs:sequence minOccurs="0"><xs:element name="a"/></xs:sequence>`, ``), ""},
		{"elements, where there is no content", narrowed(``, `<xs:sequence><xs:element name="a"/></xs:sequence>`),
			"{urn:t}a at the beginning, which that does not allow"},
	}
}

const ab = `<xs:element name="a" type="xs:int"/><xs:element name="b" type="xs:int" minOccurs="0" maxOccurs="3"/>`

// particleRestrictions are restrictions of content models, which xmllint does not compare.
func particleRestrictions() []restrictionCase {
	sequence := func(inside string) string { return `<xs:sequence>` + inside + `</xs:sequence>` }
	choice := func(inside string) string { return `<xs:choice>` + inside + `</xs:choice>` }
	element := func(name, more string) string { return `<xs:element name="` + name + `" ` + more + `/>` }
	return []restrictionCase{
		{"an element that is left out", narrowed(sequence(ab), sequence(element("a", `type="xs:int"`))), ""},
		{"an element that must be there", narrowed(sequence(ab), sequence(element("b", `type="xs:int"`))),
			"{urn:t}b at the beginning, which that does not allow"},
		{"an element less often", narrowed(sequence(ab), sequence(element("a", `type="xs:int"`)+
			element("b", `type="xs:int" minOccurs="1" maxOccurs="2"`))), ""},
		{"an element more often", narrowed(sequence(ab), sequence(element("a", `type="xs:int"`)+
			element("b", `type="xs:int" maxOccurs="4"`))), "{urn:t}b after {urn:t}b, which that does not allow"},
		{"an element that may be absent", narrowed(sequence(ab), sequence(element("a", `type="xs:int" minOccurs="0"`))),
			"nothing may come at the beginning, where that needs {urn:t}a"},
		{"another order", narrowed(sequence(ab), sequence(element("b", `type="xs:int"`)+element("a", `type="xs:int"`))),
			"{urn:t}b at the beginning"},
		{"a derived type", narrowed(sequence(ab), sequence(element("a", `type="xs:short"`))), ""},
		{"another type", narrowed(sequence(ab), sequence(element("a", `type="xs:string"`))),
			"{urn:t}a has a type that is not derived by restriction from the one there"},
		{"nillable", narrowed(sequence(ab), sequence(element("a", `type="xs:int" nillable="true"`))),
			"{urn:t}a is nillable, and not there"},
		{"no longer nillable", narrowed(sequence(element("a", `nillable="true"`)), sequence(element("a", ``))), ""},
		{"a fixed value that is free", narrowed(sequence(element("a", `type="xs:int" fixed="1"`)),
			sequence(element("a", `type="xs:int"`))), `{urn:t}a is always "1" there`},
		{"a blocked derivation that is not", narrowed(sequence(element("a", `block="extension"`)),
			sequence(element("a", ``))), "{urn:t}a does not block extension, as there"},
		{"fewer alternatives", narrowed(choice(element("a", ``)+element("b", ``)+element("c", ``)),
			choice(element("a", ``)+element("c", ``))), ""},
		{"a new alternative", narrowed(choice(element("a", ``)+element("b", ``)), choice(element("a",
			``)+element("c", ``))),
			"{urn:t}c at the beginning"},
		{"one alternative as a sequence", narrowed(choice(element("a", ``)+element("b", ``)), sequence(element("b",
			``))), ""},
		{"both alternatives", narrowed(choice(element("a", ``)+element("b", ``)),
			sequence(element("a", ``)+element("b", ``))), "{urn:t}b after {urn:t}a"},
		{"a sequence of a repeated choice", narrowed(
			`<xs:choice maxOccurs="2">`+element("a", ``)+element("b", ``)+`</xs:choice>`,
			sequence(element("a", ``)+element("b", ``))), ""},
		{"elements for a wildcard", narrowed(sequence(`<xs:any maxOccurs="2"/>`),
			sequence(element("a", ``)+element("b", ``))), ""},
		{"elements that the wildcard does not allow", narrowed(sequence(`<xs:any namespace="##other"/>`),
			sequence(element("a", ``))), "{urn:t}a at the beginning"},
		{"a narrower wildcard", narrowed(sequence(`<xs:any namespace="##any"/>`),
			sequence(`<xs:any namespace="##other"/>`)),
			""},
		{"a wider wildcard", narrowed(sequence(`<xs:any namespace="##other"/>`),
			sequence(`<xs:any namespace="##any"/>`)),
			`an element of the namespace "" at the beginning`},
		{"a wildcard for an element", narrowed(sequence(element("a", ``)), sequence(`<xs:any/>`)),
			"at the beginning, which that does not allow"},
		{"a wildcard that is compared less strictly", narrowed(sequence(`<xs:any/>`),
			sequence(`<xs:any processContents="lax"/>`)), "any elements, which are compared more strictly there"},
		{"some of all", narrowed(`<xs:all>`+element("a", ``)+element("b", `minOccurs="0"`)+`</xs:all>`,
			`<xs:all>`+element("a", ``)+`</xs:all>`), ""},
		{"too few of all", narrowed(`<xs:all>`+element("a", ``)+element("b", ``)+`</xs:all>`,
			`<xs:all>`+element("a", ``)+`</xs:all>`), "nothing may come after {urn:t}a, where that needs {urn:t}b"},
		{"all in one order", narrowed(`<xs:all>`+element("a", ``)+element("b", ``)+`</xs:all>`,
			sequence(element("b", ``)+element("a", ``))), ""},
		{"a member of a substitution group", `<xs:element name="h" type="xs:int"/><xs:element name="m" ` +
			`substitutionGroup="t:h" type="xs:int"/>` + narrowed(sequence(`<xs:element ref="t:h"/>`),
			sequence(`<xs:element ref="t:m"/>`)), ""},
		{"the head for a member", `<xs:element name="h" type="xs:int"/><xs:element name="m" ` +
			`substitutionGroup="t:h" type="xs:int"/>` + narrowed(sequence(`<xs:element ref="t:m"/>`),
			sequence(`<xs:element ref="t:h"/>`)), "{urn:t}h at the beginning"},
		{"the group of the base", `<xs:group name="g"><xs:sequence>` + ab + `</xs:sequence></xs:group>` +
			narrowed(`<xs:group ref="t:g"/>`, `<xs:group ref="t:g"/>`), ""},
		{"text between elements", strings.Replace(narrowed(sequence(ab), sequence(ab)), `<xs:complexContent>`,
			`<xs:complexContent mixed="true">`, 1), "that has no text between elements"},
		{"no text between elements", strings.Replace(narrowed(sequence(ab), sequence(ab)), `name="b">`,
			`name="b" mixed="true">`, 1), ""},
		{"a type that contains itself", narrowed(sequence(element("a", `type="t:b" minOccurs="0"`)),
			sequence(element("a", `type="t:r" minOccurs="0"`))), ""},
		{"an extended type", `<xs:complexType name="x"><xs:sequence/></xs:complexType><xs:complexType name="y">` +
			`<xs:complexContent><xs:extension base="t:x"><xs:attribute name="n"/></xs:extension></xs:complexContent>` +
			`</xs:complexType>` + narrowed(sequence(element("a", `type="t:x"`)), sequence(element("a", `type="t:y"`))),
			"{urn:t}a has a type that is not derived by restriction"},
		{"a bounded count of an unbounded one", narrowed(sequence(element("a", `maxOccurs="unbounded"`)),
			sequence(element("a", `maxOccurs="500"`))), ""},
		{"an unbounded count of a bounded one", narrowed(sequence(element("a", `maxOccurs="500"`)),
			sequence(element("a", `maxOccurs="unbounded"`))), "{urn:t}a after {urn:t}a"},
	}
}

// lenientRestrictions are restrictions that allow no more than their base, but in another form: the
// rules of XML Schema 1.0 refuse them, those of 1.1 do not.
func lenientRestrictions() []restrictionCase {
	return []restrictionCase{
		{"an anonymous type that is the same",
			narrowed(`<xs:sequence><xs:element name="a"><xs:complexType><xs:sequence>`+ab+
				`</xs:sequence></xs:complexType></xs:element></xs:sequence>`,
				`<xs:sequence><xs:element name="a"><xs:complexType>`+
					`<xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence></xs:complexType></xs:element>`+
					`</xs:sequence>`), ""},
		{"an anonymous type that allows more", narrowed(`<xs:sequence><xs:element name="a"><xs:complexType>`+
			`</xs:complexType></xs:element></xs:sequence>`, `<xs:sequence><xs:element name="a"><xs:complexType>`+
			`<xs:sequence>`+ab+`</xs:sequence></xs:complexType></xs:element></xs:sequence>`),
			"{urn:t}a has a type that is not derived"},
		{"a sequence of alternatives in a choice", narrowed(
			`<xs:choice><xs:sequence><xs:element name="a"/><xs:element name="b"/></xs:sequence>`+
				`<xs:element name="c"/></xs:choice>`,
			`<xs:sequence><xs:element name="a"/><xs:element name="b"/></xs:sequence>`), ""},
		{"an attribute of a simple type, as in DIME", `<xs:element name="e" type="t:r"/><xs:complexType name="r">` +
			`<xs:simpleContent><xs:restriction base="xs:base64Binary"><xs:attribute name="a"/></xs:restriction>` +
			`</xs:simpleContent></xs:complexType>`, ""},
	}
}

// A restriction that allows more than its base is refused, at its place, with what uses it; all
// else compiles.
func TestRestrictions(t *testing.T) {
	for _, list := range [][]restrictionCase{
		simpleRestrictions(), attributeRestrictions(), particleRestrictions(), lenientRestrictions(),
	} {
		for _, tc := range list {
			t.Run(tc.what, func(t *testing.T) {
				s := load(t, files{"a.xsd": schema(target, tc.text+`<xs:element name="other" type="xs:int"/>`)})
				var reach, rest xsd.Reach
				reach.Element(s.Element(name("e")))
				rest.Element(s.Element(name("other")))
				assert.Empty(t, rest.Problems)
				if tc.wrong == "" {
					assert.Empty(t, reach.Problems)
					return
				}
				require.NotEmpty(t, reach.Problems)
				assert.Contains(t, reach.Problems[0].What, tc.wrong)
				assert.Positive(t, reach.Problems[0].Place.Column)
			})
		}
	}
}

// However often things repeat inside each other, a restriction is compared in bounded time: what
// takes longer is taken.
func TestRestrictionsAreBounded(t *testing.T) {
	counted := func(inside string) string {
		return `<xs:sequence minOccurs="0" maxOccurs="999">` + inside + `</xs:sequence>`
	}
	var wide strings.Builder
	for i := range 900 {
		fmt.Fprintf(&wide, `<xs:element name="n%d" minOccurs="0" maxOccurs="9"/>`, i)
	}
	nested := counted(counted(`<xs:element name="a" maxOccurs="999"/>`) +
		counted(`<xs:element name="b" minOccurs="0"/>`))
	for _, model := range []string{
		nested, `<xs:sequence>` + wide.String() + `</xs:sequence>`,
		`<xs:choice maxOccurs="unbounded">` + wide.String() + `</xs:choice>`,
		`<xs:all>` + strings.ReplaceAll(wide.String(), ` maxOccurs="9"`, "") + `</xs:all>`,
	} {
		s := load(t, files{"a.xsd": schema(target, narrowed(model, model))})
		var reach xsd.Reach
		reach.Element(s.Element(name("e")))
		assert.Empty(t, reach.Problems)
	}
}

// So is a restriction with many values of a union of many types.
func TestManyValuesOfManyTypes(t *testing.T) {
	var members, values strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&members, `<xs:simpleType><xs:restriction base="xs:int"><xs:minInclusive value="%d"/>`+
			`</xs:restriction>`+
			`</xs:simpleType>`, i)
		fmt.Fprintf(&values, `<xs:enumeration value="%d"/>`, -i)
	}
	s := load(t, files{"a.xsd": schema(target, `<xs:element name="e" type="t:r"/><xs:simpleType name="b"><xs:union>`+
		members.String()+`</xs:union></xs:simpleType><xs:simpleType name="r"><xs:restriction base="t:b">`+
		values.String()+`</xs:restriction></xs:simpleType>`)})
	var reach xsd.Reach
	reach.Element(s.Element(name("e")))
	assert.NotEmpty(t, reach.Problems, "the first of them")
}
