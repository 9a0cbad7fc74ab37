package peer

import (
	"bytes"
	"context"
)

// ConcatPath is where [Concat] stands.
const ConcatPath = "/concat"

// Concat joins strings: the text of all item elements, one behind the other, white space included.
// It is the papers' string array concatenation.
func Concat() Service {
	return (&wrappedOperation{
		name: "concat", documentation: "Joins strings, white space included.",
		request: `<xs:element name="item" type="xs:string" minOccurs="0" maxOccurs="unbounded"/>`,
		reply:   `<xs:element name="result" type="xs:string"/>`,
		result:  "string",
		example: `<item>thin </item><item>links</item>`,
		answer: func(_ context.Context, e *envelope) (content, error) {
			var b bytes.Buffer
			b.WriteString("<result>")
			err := e.children(func(name string) error {
				if name != "item" {
					return refuse("%s is not expected here", name)
				}
				text, err := e.text(name)
				escape(&b, text)
				return err
			})
			b.WriteString("</result>")
			return content{text: b.Bytes()}, err
		},
	}).service()
}
