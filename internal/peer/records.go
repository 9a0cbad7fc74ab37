package peer

import (
	"bytes"
	"context"
	"strconv"
)

// RecordsPath is where [Records] stands.
const RecordsPath = "/records"

// Records gives back the records it got, each a string, an int and a boolean, as values: the string
// as it is, the int without plus sign and leading zeros, the boolean as true or false.
func Records() Service {
	return (&wrappedOperation{
		name: "records", documentation: "Gives back records of a string, an int and a boolean.",
		request: `<xs:element name="record" type="tns:Record" minOccurs="0" maxOccurs="unbounded"/>`,
		reply:   `<xs:element name="record" type="tns:Record" minOccurs="0" maxOccurs="unbounded"/>`,
		types: `<xs:complexType name="Record"><xs:sequence><xs:element name="text" type="xs:string"/>` +
			`<xs:element name="number" type="xs:int"/>` +
			`<xs:element name="flag" type="xs:boolean"/></xs:sequence></xs:complexType>`,
		example: `<record><text>one</text><number>1</number><flag>true</flag></record><record><text>two</text>` +
			`<number>2</number><flag>false</flag></record>`,
		answer: func(_ context.Context, e *envelope) (content, error) {
			var b bytes.Buffer
			err := e.children(func(name string) error {
				if name != "record" {
					return refuse("%s is not expected here", name)
				}
				return record(&b, e)
			})
			return content{text: b.Bytes()}, err
		},
	}).service()
}

func record(b *bytes.Buffer, e *envelope) error {
	v, err := e.values([]string{"text", "number", "flag"})
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(collapse(v["number"]), 10, 32)
	if err != nil {
		return refuse("%.40q is no int", v["number"])
	}
	flag, err := parseBoolean(collapse(v["flag"]))
	if err != nil {
		return err
	}
	b.WriteString("<record>")
	element(b, "text", v["text"])
	element(b, "number", strconv.FormatInt(n, 10))
	element(b, "flag", strconv.FormatBool(flag))
	b.WriteString("</record>")
	return nil
}

func parseBoolean(text string) (bool, error) {
	switch text {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, refuse("%.40q is no boolean", text)
}
