package xsd_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

// judged is a schema at a.xsd, and messages with its element e: xmllint says the same of them.
type judged struct {
	what string
	files
	// good and bad are messages; lax are bad ones that xmllint takes: it looks at nothing but the
	// last step of a derivation.
	good, bad, lax []string
	// wrong is what is wrong with the schema; "": nothing.
	wrong string
}

const instance = ` xmlns="urn:t" xmlns:t="urn:t" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`

// e is a message with this inside its element e.
func e(attributes, inside string) string { return "<e" + instance + attributes + ">" + inside + "</e>" }

// redefining are schemas that redefine what b.xsd says.
func redefining() (list []judged) {
	const was = `<xs:element name="e" type="t:old"/><xs:complexType name="old"><xs:sequence>
		<xs:element name="n" type="t:name"/><xs:group ref="t:g"/></xs:sequence><xs:attributeGroup ref="t:a"/>
		</xs:complexType>
		<xs:simpleType name="name"><xs:restriction base="xs:string"><xs:maxLength value="9"/></xs:restriction>
		</xs:simpleType>
		<xs:group name="g"><xs:sequence><xs:element name="x" type="xs:int"/></xs:sequence></xs:group>
		<xs:attributeGroup name="a"><xs:attribute name="p" type="xs:int"/><xs:attribute name="q"/></xs:attributeGroup>
		<xs:complexType name="more"><xs:complexContent><xs:extension base="t:old"><xs:sequence>
		<xs:element name="last" type="t:name"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>
		<xs:element name="m" type="t:more"/>`
	const x, y = "<n>a</n><x>1</x>", "<n>a</n><x>1</x><y>2</y>"
	const shorter = `<xs:simpleType name="name"><xs:restriction base="t:name"><xs:minLength value="2"/>
		</xs:restriction></xs:simpleType>`
	const extended = `<xs:complexType name="old"><xs:complexContent><xs:extension base="t:old"><xs:sequence>
		<xs:element name="y" type="xs:int"/></xs:sequence><xs:attribute name="r"/></xs:extension></xs:complexContent>
		</xs:complexType>`
	add := func(what, redefined, wrong string, good, bad []string) {
		list = append(list, judged{what: what, wrong: wrong, good: good, bad: bad, files: files{
			"a.xsd": schema(target, `<xs:redefine schemaLocation="b.xsd"><xs:annotation/>`+redefined+`</xs:redefine>`),
			"b.xsd": schema(target, was),
		}})
	}
	all := func(m ...string) []string { return m }
	add("nothing", "", "", all(e("", x)), all(e("", y)))
	add("a simple type", shorter, "", all(e("", "<n>ab</n><x>1</x>")),
		all(e("", x), e("", "<n>abcdefghij</n><x>1</x>")))
	add("an extension", extended, "", all(e("", y), e(` r="1" p="2"`, y), e(` xsi:type="t:more"`, y+"<last>b</last>")),
		all(e("", x), e(` s="1"`, y), e(` xsi:type="t:more"`, x+"<last>b</last>")))
	add("a restriction", `<xs:complexType name="old"><xs:complexContent><xs:restriction base="t:old"><xs:sequence>
		<xs:element name="n" type="t:name" fixed="a"/><xs:element name="x" type="xs:int"/></xs:sequence>
		<xs:attribute name="p" type="xs:int" use="required"/><xs:attribute name="q" use="prohibited"/>
		</xs:restriction></xs:complexContent></xs:complexType>`, "",
		all(e(` p="1"`, x)), all(e("", x), e(` p="1" q="1"`, x), e(` p="1"`, "<n>b</n><x>1</x>")))
	add("a group with what it was", `<xs:group name="g"><xs:sequence><xs:group ref="t:g"/>
		<xs:element name="y" type="xs:int"/></xs:sequence></xs:group>`, "", all(e("", y)), all(e("", x)))
	add("a group without", `<xs:group name="g"><xs:sequence><xs:element name="x" type="xs:byte"/></xs:sequence>
		</xs:group>`, "", all(e("", x)), all(e("", "<n>a</n><x>1000</x>"), e("", "<n>a</n>")))
	add("attributes with what they were", `<xs:attributeGroup name="a"><xs:attributeGroup ref="t:a"/>
		<xs:attribute name="r" use="required"/></xs:attributeGroup>`, "",
		all(e(` p="1" q="1" r="1"`, x)), all(e(` p="1"`, x), e(` r="1" p="x"`, x)))
	add("attributes without", `<xs:attributeGroup name="a"><xs:attribute name="p" type="xs:byte"/>
		</xs:attributeGroup>`, "", all(e(` p="1"`, x), e("", x)), all(e(` p="1000"`, x), e(` q="1"`, x)))
	add("all at once", shorter+extended, "", all(e("", "<n>ab</n><x>1</x><y>2</y>")), all(e("", y)))

	add("a group twice", `<xs:group name="g"><xs:sequence><xs:group ref="t:g"/><xs:group ref="t:g"/></xs:sequence>
		</xs:group>`, "a.xsd:1:232: redefine of group {urn:t}g: it has what it was twice", nil, nil)
	add("a group again and again", `<xs:group name="g"><xs:sequence><xs:group ref="t:g" maxOccurs="2"/></xs:sequence>
		</xs:group>`, "a.xsd:1:211: redefine of group {urn:t}g: what it was occurs once", nil, nil)
	add("another base", `<xs:complexType name="old"><xs:complexContent><xs:extension base="t:other"/>
		</xs:complexContent></xs:complexType><xs:complexType name="other"/>`,
		"redefine of complexType {urn:t}old, which does not begin with what it was", nil, nil)
	add("no base", `<xs:complexType name="old"/>`, "which does not begin with what it was", nil, nil)
	add("a list", `<xs:simpleType name="name"><xs:list itemType="t:name"/></xs:simpleType>`,
		"which does not begin with what it was", nil, nil)
	add("what is not there", `<xs:simpleType name="none"><xs:restriction base="t:none"/></xs:simpleType>`,
		"redefine of simpleType {urn:t}none, which is not declared in b.xsd", nil, nil)
	add("an element", `<xs:element name="e"/>`, "element inside redefine", nil, nil)

	chain := judged{
		what: "what was redefined", good: all(e("", y+"<z>3</z>")), bad: all(e("", y), e("", x)), files: files{
			"a.xsd": schema(target, `<xs:redefine schemaLocation="c.xsd"><xs:group name="g"><xs:sequence>
				<xs:group ref="t:g"/><xs:element name="z"/></xs:sequence></xs:group></xs:redefine>`),
			"c.xsd": schema(target, `<xs:redefine schemaLocation="b.xsd"><xs:group name="g"><xs:sequence>
				<xs:group ref="t:g"/><xs:element name="y"/></xs:sequence></xs:group></xs:redefine>`),
			"b.xsd": schema(target, was),
		},
	}
	chameleon := judged{
		what: "a schema without a namespace", good: all(e("", "<a>1</a><b>2</b>")), bad: all(e("", "<a>1</a>")),
		files: files{
			"a.xsd": schema(target, `<xs:redefine schemaLocation="b.xsd"><xs:complexType name="c"><xs:complexContent>
				<xs:extension base="t:c"><xs:sequence><xs:element name="b"/></xs:sequence></xs:extension>
				</xs:complexContent></xs:complexType></xs:redefine>`),
			"b.xsd": schema(`elementFormDefault="qualified"`, `<xs:element name="e" type="c"/>
				<xs:complexType name="c"><xs:sequence><xs:element name="a"/></xs:sequence></xs:complexType>`),
		},
	}
	return append(list, chain, chameleon)
}

// blocking are schemas whose declarations block or exclude what is derived from them.
func blocking() (list []judged) {
	const types = `<xs:complexType name="x"><xs:complexContent><xs:extension base="t:base"><xs:sequence>
		<xs:element name="b" minOccurs="0"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>
		<xs:complexType name="r"><xs:complexContent><xs:restriction base="t:base"><xs:sequence>
		<xs:element name="a" type="xs:byte"/></xs:sequence></xs:restriction></xs:complexContent></xs:complexType>
		<xs:complexType name="xr"><xs:complexContent><xs:restriction base="t:x"><xs:sequence><xs:sequence>
		<xs:element name="a" type="xs:byte"/></xs:sequence><xs:sequence><xs:element name="b"/></xs:sequence>
		</xs:sequence></xs:restriction></xs:complexContent></xs:complexType>`
	const base = `><xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence></xs:complexType>`
	as := func(typ string) string {
		b := ""
		if typ == "xr" {
			b = "<b/>"
		}
		return e(` xsi:type="t:`+typ+`"`, "<a>1</a>"+b)
	}
	own, x, r, xr := as("base"), as("x"), as("r"), as("xr")
	all := func(m ...string) []string { return m }
	add := func(what, attributes, content, wrong string, good, bad []string) {
		list = append(list, judged{what: what, wrong: wrong, good: good, bad: bad, files: files{
			"a.xsd": schema(target+attributes, content),
		}})
	}
	typed := func(element, typ string) string {
		return `<xs:element name="e" type="t:base"` + element + `/><xs:complexType name="base"` + typ + base + types
	}
	add("nothing is blocked", "", typed("", ""), "", all(own, x, r, xr), nil)
	add("a type blocks extension", "", typed("", ` block="extension"`), "", all(own, r), all(x, xr))
	add("a type blocks restriction", "", typed("", ` block="restriction"`), "", all(own, x), all(r, xr))
	add("a type blocks all", "", typed("", ` block="#all"`), "", all(own), all(x, r, xr))
	add("an element blocks extension", "", typed(` block="extension"`, ""), "", all(own, r), all(x, xr))
	add("an element blocks one, its type the other", "", typed(` block="extension"`, ` block="restriction"`), "",
		all(own), all(x, r, xr))
	add("the schema blocks", ` blockDefault="restriction"`, typed("", ""), "", all(own, x), all(r, xr))
	add("the schema blocks, and they do not", ` blockDefault="#all"`, typed(` block=""`, ` block=""`), "",
		all(own, x, r, xr), nil)
	add("an element of any type", "",
		`<xs:element name="e" block="restriction"/><xs:complexType name="base"`+base+types, "", nil, all(own, r))
	add("a simple type", "", `<xs:element name="e" type="xs:int" block="restriction"/>`, "",
		all(e("", "1")), all(e(` xmlns:xs="http://www.w3.org/2001/XMLSchema" xsi:type="xs:byte"`, "1")))
	add("an abstract type is named", "", `<xs:element name="e" type="t:base"/><xs:complexType name="base"`+base+
		`<xs:complexType name="x" abstract="true"><xs:complexContent><xs:extension base="t:base"/></xs:complexContent>
		</xs:complexType>`, "", all(own), all(x))

	head := func(attributes, typ string) string {
		return `<xs:element name="e"><xs:complexType><xs:sequence><xs:element ref="t:h"/></xs:sequence></xs:complexType>
			</xs:element><xs:element name="h" type="t:base"` + attributes + `/>
			<xs:element name="same" substitutionGroup="t:h"/><xs:element name="ext" type="t:x" substitutionGroup="t:h"/>
			<xs:element name="res" type="t:r" substitutionGroup="t:h"/>
			<xs:element name="both" type="t:xr" substitutionGroup="t:ext"/>
			<xs:element name="abs" abstract="true" substitutionGroup="t:h"/>
			<xs:complexType name="base"` + typ + base + types
	}
	in := func(name string) string {
		b := ""
		if name == "both" {
			b = "<b/>"
		}
		return e("", "<"+name+"><a>1</a>"+b+"</"+name+">")
	}
	h, same, ext, res, both, abs := in("h"), in("same"), in("ext"), in("res"), in("both"), in("abs")
	add("a substitution group", "", head("", ""), "", all(h, same, ext, res, both), all(abs))
	add("a head blocks substitution", "", head(` block="substitution"`, ""), "", all(h), all(same, ext, res, both, abs))
	add("a head blocks extension", "", head(` block="extension"`, ""), "", all(h, same, res), all(ext))
	list[len(list)-1].lax = all(both)
	add("a head blocks restriction", "", head(` block="restriction"`, ""), "", all(h, same, ext), all(res, both))
	add("its type blocks", "", head("", ` block="extension"`), "", all(h, same, res), all(ext))
	list[len(list)-1].lax = all(both)
	add("a head blocks all", "", head(` block="#all"`, ""), "", all(h), all(same, ext, res, both))

	add("a head is final", "", head(` final="extension"`, ""),
		"{urn:t}ext may not stand in place of {urn:t}h, which is final for extension", nil, nil)
	add("a type is final", "", typed("", ` final="extension"`),
		"{urn:t}base is final: there is no extension of it", nil, nil)
	add("a type is final for the other", "", typed("", ` final="restriction"`),
		"{urn:t}base is final: there is no restriction of it", nil, nil)
	add("the schema is final", ` finalDefault="#all"`, typed("", ""), "is final: there is no", nil, nil)
	add("a simple type is final", "", `<xs:element name="e" type="t:s"/><xs:simpleType name="s">
		<xs:restriction base="t:f"/></xs:simpleType><xs:simpleType name="f" final="restriction">
		<xs:restriction base="xs:int"/></xs:simpleType>`, "{urn:t}f is final: there is no restriction of it", nil, nil)
	add("a simple type is final for lists", "", `<xs:element name="e" type="t:s"/><xs:simpleType name="s">
		<xs:list itemType="t:f"/></xs:simpleType><xs:simpleType name="f" final="list">
		<xs:restriction base="xs:int"/></xs:simpleType>`, "{urn:t}f is final: there is no list of it", nil, nil)
	add("a simple type is final for others", "", `<xs:element name="e" type="t:s"/><xs:simpleType name="s">
		<xs:list itemType="t:f"/></xs:simpleType><xs:simpleType name="f" final="restriction union">
		<xs:restriction base="xs:int"/></xs:simpleType>`, "", all(e("", "1 2")), all(e("", "x")))
	return list
}

// What redefines, blocks and is final has these verdicts, which are those of xmllint.
func TestDerivations(t *testing.T) {
	for _, tc := range append(redefining(), blocking()...) {
		t.Run(tc.what, func(t *testing.T) {
			s := load(t, tc.files)
			var reach xsd.Reach
			for _, name := range s.Elements() {
				reach.Element(s.Element(name))
			}
			for _, name := range s.Types() {
				reach.Type(s.Type(name))
			}
			problems := append(reach.Problems, s.Problems...)
			if tc.wrong != "" {
				require.NotEmpty(t, problems)
				assert.Contains(t, problems[0].Error(), tc.wrong)
				return
			}
			require.Empty(t, problems)
			for i, m := range slices.Concat(tc.good, tc.bad, tc.lax) {
				n, err := xsd.ParseMessage("m.xml", []byte(m))
				require.NoError(t, err)
				found := s.Check(s.Element(name("e")), n)
				assert.Equal(t, i < len(tc.good), len(found) == 0, "%s: %v", m, found)
			}
		})
	}
}
