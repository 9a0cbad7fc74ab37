package xsd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

// each repeats a text with the numbers from 0 on.
func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, strings.ReplaceAll(format, "#", "%[1]d"), i)
	}
	return b.String()
}

// What is compared with a choice, a substitution group, an enumeration or a pattern costs what the
// message costs, however many there are.
func TestChecksAreLinear(t *testing.T) {
	const n = 5000
	in := func(model string) string {
		return `<xs:element name="e"><xs:complexType>` + model + `</xs:complexType></xs:element>`
	}
	for what, tc := range map[string]struct{ content, message string }{
		"a choice": {in(`<xs:choice maxOccurs="unbounded">` + each(n, `<xs:element name="m#" type="xs:int"/>`) +
			`</xs:choice>`), each(n, "<m#>1</m#>")},
		"choices in a choice": {in(`<xs:choice maxOccurs="unbounded"><xs:element name="x"/><xs:choice>` +
			each(n, `<xs:element name="m#"/>`) + `</xs:choice></xs:choice>`), each(n, "<m#>1</m#>")},
		"all": {in(`<xs:all>` + each(n, `<xs:element name="m#"/>`) + `</xs:all>`), each(n, "<m#>1</m#>")},
		"a substitution group": {in(`<xs:sequence><xs:element ref="t:h" maxOccurs="unbounded"/></xs:sequence>`) +
			`<xs:element name="h" type="xs:int" abstract="true"/>` +
			each(n, `<xs:element name="m#" type="xs:int" substitutionGroup="t:h"/>`), each(n, "<m#>1</m#>")},
		"an enumeration": {in(`<xs:sequence><xs:element name="m" type="t:v" maxOccurs="unbounded"/></xs:sequence>`) +
			`<xs:simpleType name="v"><xs:restriction base="xs:token">` + each(n, `<xs:enumeration value="v#"/>`) +
			`</xs:restriction></xs:simpleType>`, each(n, "<m>v#</m>")},
		"a pattern": {in(`<xs:sequence><xs:element name="m" type="t:v" maxOccurs="unbounded"/></xs:sequence>`) +
			`<xs:simpleType name="v"><xs:restriction base="xs:token"><xs:pattern value="[a-z]+\d{1,4}"/>` +
			`</xs:restriction></xs:simpleType>`, each(n, "<m>v#</m>")},
	} {
		t.Run(what, func(t *testing.T) {
			s := load(t, files{"a.xsd": schema(target, tc.content)})
			e := s.Element(name("e"))
			message, err := xsd.ParseMessage("m.xml", []byte(`<e xmlns="urn:t">`+tc.message+"</e>"))
			require.NoError(t, err)
			assert.LessOrEqual(t, testing.AllocsPerRun(1, func() { assert.Empty(t, s.Check(e, message)) }), 60.0*n)
			wrong, err := xsd.ParseMessage("m.xml", []byte(`<e xmlns="urn:t">`+tc.message+"<m>none</m></e>"))
			require.NoError(t, err)
			assert.Len(t, s.Check(e, wrong), 1)
		})
	}
}
