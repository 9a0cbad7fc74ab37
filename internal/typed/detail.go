package typed

import (
	"bytes"
	"encoding/xml"

	"github.com/hhfr/hhfr/internal/xsd"
)

// inDetail is the name of the first element in the detail of a fault; none if it has none.
func inDetail(fault []byte) (name xsd.QName) {
	dec := xml.NewDecoder(bytes.NewReader(fault))
	dec.Strict = false
	for in := ""; ; {
		t, err := dec.Token()
		if err != nil {
			return name
		}
		start, ok := t.(xml.StartElement)
		switch {
		case ok && (in == "detail" || in == "Detail"):
			return xsd.QName(start.Name)
		case ok:
			in = start.Name.Local
		}
		if _, ends := t.(xml.EndElement); ends {
			in = ""
		}
	}
}
