package wsdl_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
)

// What services of all kinds have, or do wrong: it compiles, or is refused for what is missing.
func TestOddities(t *testing.T) {
	const (
		e     = `<xs:element name="e" type="xs:int"/>`
		e2    = e + `<xs:element name="f" type="xs:int"/>`
		part2 = part + `<w:part name="q" element="s:f"/>`
		body  = `<soap:body use="literal"/>`
	)
	of := func(types, parts, bound string) map[string]string {
		return map[string]string{"a.wsdl": strings.Replace(op(types, parts), body, bound, 1)}
	}
	schema := func(content string) string { return inline + content + `</xs:schema>` }
	and := func(files map[string]string, name, text string) map[string]string {
		files[name] = text
		return files
	}
	xsdOf := func(content string) string {
		return `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:s="urn:s" targetNamespace="urn:s"
			elementFormDefault="qualified">` + content + `</xs:schema>`
	}
	more := func(name string) string { // what x was, and an element
		return `<xs:complexType name="x"><xs:complexContent><xs:extension base="s:x"><xs:sequence><xs:element name="` +
			name + `" type="xs:int"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>`
	}
	five := func(files map[string]string) map[string]string {
		e := ""
		for i := range 5 {
			e += fmt.Sprintf(`<xs:element ref="s:e%d"/>`, i)
			files[fmt.Sprintf("%d.xsd", i)] = xsdOf(fmt.Sprintf(`<xs:include schemaLocation="%d.xsd"/>
				<xs:include schemaLocation="%d.xsd"/><xs:element name="e%d" type="xs:int"/>`, (i+1)%5, i, i))
		}
		files["4.xsd"] = strings.Replace(files["4.xsd"], `</xs:schema>`, `<xs:element name="e"><xs:complexType>
			<xs:sequence>`+e+`</xs:sequence></xs:complexType></xs:element></xs:schema>`, 1)
		return files
	}
	const other = `<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema"
		targetNamespace="urn:other"><w:types><xs:schema targetNamespace="urn:z"/>
		<xs:schema targetNamespace="urn:o"><xs:simpleType name="x"><xs:restriction base="xs:int"/></xs:simpleType>
		</xs:schema><xs:schema targetNamespace="urn:o"><xs:simpleType name="y"><xs:restriction base="xs:byte"/>
		</xs:simpleType></xs:schema></w:types></w:definitions>`
	for _, tc := range []struct {
		what  string
		files map[string]string
		tree  string
		wrong string
	}{
		{"no part at all", of(schema(e), part, `<soap:body use="literal" parts=""/>`), "", ""},
		{"one part of several", of(schema(e2), part2, `<soap:body use="literal" parts="q"/>`), "{urn:s}f  int\n", ""},
		{"a part that is not there", of(schema(e), part, `<soap:body use="literal" parts="p nobody"/>`), "",
			"message s:m has no part nobody"},
		{"a part without element and type", of(schema(e), `<w:part name="p"/>`, body), "",
			"part p has neither an element nor a type"},
		{"a header block of another message", map[string]string{"a.wsdl": strings.Replace(strings.Replace(
			op(schema(e2), part), body, `<soap:header message="s:h" part="h" use="literal"/>`+body, 1),
			`<w:message name="m">`,
			`<w:message name="h"><w:part name="h" element="s:f"/></w:message>
			<w:message name="m">`, 1)}, "{urn:s}e  int\nheader  {urn:s}f  int\n", ""},
		{"MIME with two kinds of one part, and a header block inside", of(schema(e2), part2+
			`<w:part name="a" type="xs:base64Binary"/>`, `<mime:multipartRelated><mime:part>
			<soap:header message="s:m" part="q" use="literal"/>`+body+`</mime:part><mime:part>
			<mime:content part="a" type="image/png"/><mime:content part="a" type="image/jpeg"/></mime:part>
			</mime:multipartRelated>`), "{urn:s}e  int\nheader  {urn:s}f  int\n", ""},
		{"an import without a location, of a schema behind it; a file beside has the namespace, too",
			and(of(schema(`<xs:import namespace="urn:o"/><xs:element name="e" type="o:x"/>`)+
				`<xs:schema targetNamespace="urn:o"><xs:simpleType name="x"><xs:restriction base="xs:int"/>
				</xs:simpleType></xs:schema>`, part, body), "x.xsd",
				`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o">
				<xs:simpleType name="x"><xs:restriction base="xs:byte"/></xs:simpleType></xs:schema>`),
			"{urn:s}e  int\n", ""},
		{"an import of the types of a WSDL, which has two schemas of the namespace",
			and(of(schema(`<xs:import namespace="urn:o" schemaLocation="other.wsdl"/>
				<xs:element name="e" type="o:y"/>`), part, body), "other.wsdl", other), "{urn:s}e  byte\n", ""},
		{"an import of what has no namespace", and(of(`<xs:schema targetNamespace="urn:s">
			<xs:import schemaLocation="n.xsd"/><xs:element name="e" type="x"/></xs:schema>`, part, body), "n.xsd",
			`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:simpleType name="x">
			<xs:restriction base="y"/></xs:simpleType><xs:simpleType name="y"><xs:restriction base="xs:int"/>
			</xs:simpleType></xs:schema>`), "{urn:s}e  int\n", ""},
		{"a schema of 1999", of(`<o:schema xmlns:o="http://www.w3.org/1999/XMLSchema" targetNamespace="urn:s">
			<o:element name="e" type="o:int"/></o:schema>`, part, body), "", "element {urn:s}e is not declared"},
		{"what is redefined", and(of(schema(`<xs:redefine schemaLocation="r.xsd"><xs:simpleType name="x">
			<xs:restriction base="s:x"/></xs:simpleType></xs:redefine>`), part, body), "r.xsd",
			`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="e" type="x"/>
			<xs:simpleType name="x"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>`), "{urn:s}e  int\n",
			""},
		{"what is redefined and is not there", of(schema(`<xs:redefine schemaLocation="r.xsd"><xs:simpleType name="x">
			<xs:restriction base="s:x"/></xs:simpleType></xs:redefine><xs:element name="e" type="s:x"/>`), part, body),
			"", "redefine of simpleType {urn:s}x, which is not declared in r.xsd"},
		{"one namespace in five files that include each other", five(of(inline+`<xs:include schemaLocation="0.xsd"/>
			</xs:schema>`, part, body)),
			"{urn:s}e  elements\n  e0  int\n  e1  int\n  e2  int\n  e3  int\n  e4  int\n", ""},
		{"what is redefined twice", and(and(of(schema(`<xs:redefine schemaLocation="1.xsd">`+more("z")+`</xs:redefine>
			<xs:element name="e" type="s:x"/>`), part, body), "1.xsd", xsdOf(`<xs:redefine schemaLocation="2.xsd">`+
			more("y")+`</xs:redefine>`)), "2.xsd", xsdOf(`<xs:complexType name="x"><xs:sequence/></xs:complexType>`)),
			"{urn:s}e  elements\n  y  int\n  z  int\n", ""},
		{"groups that contain each other", of(schema(`<xs:group name="g"><xs:sequence><xs:group ref="s:h"/>
			</xs:sequence></xs:group><xs:group name="h"><xs:sequence><xs:group ref="s:g"/></xs:sequence></xs:group>
			<xs:element name="e"><xs:complexType><xs:group ref="s:g"/></xs:complexType></xs:element>`), part, body), "",
			"group {urn:s}g contains itself"},
		{"bases in a circle", of(schema(`<xs:complexType name="x"><xs:complexContent><xs:extension base="s:y"/>
			</xs:complexContent></xs:complexType><xs:complexType name="y"><xs:complexContent><xs:extension base="s:x"/>
			</xs:complexContent></xs:complexType><xs:element name="e" type="s:x"/>`), part, body), "",
			"{urn:s}x is derived from itself"},
		{"a wildcard in all", of(schema(`<xs:element name="e"><xs:complexType><xs:all><xs:element name="f"/><xs:any/>
			</xs:all></xs:complexType></xs:element>`), part, body), "", "any inside all, which has elements only"},
		{"anonymous types that contain each other", of(schema(`<xs:element name="e"><xs:complexType><xs:sequence>
			<xs:element name="f" minOccurs="0"><xs:complexType><xs:choice><xs:element ref="s:e"/></xs:choice>
			</xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>`), part, body),
			"{urn:s}e  elements\n  f  0..1  elements\n    e  elements  (as above)\n", ""},
		{"a binding of HTTP beside", map[string]string{"a.wsdl": strings.Replace(op(schema(e), part),
			`<w:binding name="b"`, `<w:binding name="get" type="s:p"><h:binding verb="GET"
			xmlns:h="http://schemas.xmlsoap.org/wsdl/http/"/><w:operation name="Op"><h:operation location="/x"
			xmlns:h="http://schemas.xmlsoap.org/wsdl/http/"/></w:operation></w:binding><w:binding name="b"`, 1)},
			"{urn:s}e  int\n", ""},
	} {
		t.Run(tc.what, func(t *testing.T) {
			d, err := wsdl.Load(t.Context(), filepath.Join(write(t, tc.files), "a.wsdl"), wsdl.SourceOptions{})
			require.NoError(t, err)
			require.Len(t, d.Operations, 1)
			if o := d.Operations[0]; tc.wrong != "" {
				require.NotEmpty(t, o.Problems)
				assert.Contains(t, o.Problems[0].Error(), tc.wrong)
				assert.Contains(t, o.Problems[0].Error(), "a.wsdl:")
				return
			}
			require.Empty(t, d.Operations[0].Problems)
			assert.Empty(t, d.Problems)
			var b strings.Builder
			require.NoError(t, d.Operations[0].Input.Contents().Tree(&b))
			assert.Equal(t, tc.tree, b.String())
		})
	}
}
