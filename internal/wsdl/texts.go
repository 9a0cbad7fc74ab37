package wsdl

import (
	"encoding/xml"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xsd"
)

// sourceText is a document of a description as it came.
type sourceText struct {
	location string
	text     []byte
}

// locationAttr is an attribute that says where another document is, or a service.
var locationAttr = regexp.MustCompile(`\b((?:schemaL|l)ocation\s*=\s*)("[^"]*"|'[^']*')`)

// Text is a document of the description for others to read, of those that there are with
// [SourceOptions].Texts: 0 is the description, then those that it imports; nil: there is no such
// document. Services are at the URL that service has for theirs, and other documents at the URL
// that document has for their number. What is not in UTF-8 is as it came.
func (d *ServiceDescription) Text(n int, service func(url string) string, document func(n int) string) []byte {
	if n < 0 || n >= len(d.texts) {
		return nil
	}
	of := d.texts[n]
	if !utf8.Valid(of.text) {
		return of.text
	}
	number := map[string]int{}
	for i, t := range d.texts {
		number[t.location] = i
	}
	return locationAttr.ReplaceAllFunc(of.text, func(found []byte) []byte {
		parts := locationAttr.FindSubmatch(found)
		value := unescaped(string(parts[2][1 : len(parts[2])-1]))
		to := value
		if d.isPort(value) {
			to = service(value)
		} else if at, err := xsd.Resolve(of.location, strings.TrimSpace(value)); err == nil {
			if i, known := number[at]; known {
				to = document(i)
			}
		}
		if to == value {
			return found
		}
		var b strings.Builder
		b.Write(parts[1])
		b.WriteByte('"')
		_ = xml.EscapeText(&b, []byte(to))
		b.WriteByte('"')
		return []byte(b.String())
	})
}

func (d *ServiceDescription) isPort(location string) bool {
	for _, p := range d.Ports {
		if p.Location == strings.TrimSpace(location) {
			return true
		}
	}
	return false
}

// unescaped is a value of an attribute as it is meant.
func unescaped(value string) string {
	var a struct {
		V string `xml:"v,attr"`
	}
	if err := xml.Unmarshal([]byte(`<a v="`+strings.ReplaceAll(value, `"`, "&quot;")+`"/>`), &a); err != nil {
		return value
	}
	return a.V
}
