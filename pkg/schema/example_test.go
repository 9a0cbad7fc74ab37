package schema_test

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/pkg/schema"
)

// A message made of values, by one of the papers' examples.
func ExampleSchema_Message() {
	s, err := schema.Parse([]byte(`<xs:element name="HHFR">
  <xs:complexType>
    <xs:element name="String1" type="string"/>
    <xs:element name="String2" type="string"/>
  </xs:complexType>
</xs:element>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	message, err := s.Message(map[string]any{"String1": "thin", "String2": "links"})
	fmt.Println(s.URI())
	fmt.Println(strings.ReplaceAll(string(message), "><", ">\n<"), err)
	// Output:
	// urn:hhfr:schema:sha256:2f973abc2d00399a4c7974d6479d101ba42bb095a0674411094b3b0a5267f117
	// <?xml version="1.0" encoding="UTF-8"?>
	// <soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">
	// <soap:Body>
	// <HHFR>
	// <String1>thin</String1>
	// <String2>links</String2>
	// </HHFR>
	// </soap:Body>
	// </soap:Envelope> <nil>
}

// Text that is not in the dialect is reported with line and column.
func ExampleParse() {
	_, err := schema.Parse([]byte("<element name=\"a\">\n  <complexType><choice/></complexType>\n</element>"))
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// line 2, column 16:
	// not in the HHFR Schema dialect:
	// choice:
	// elements stand in a complexType itself, in their order
}
