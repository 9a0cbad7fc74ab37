package wsdl

import (
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Documentation is what the documents of a description say to people, by the place of the element
// that it is about; white space in it is as it came. There is some with [SourceOptions].Texts.
func (d *ServiceDescription) Documentation() map[xsd.Position]string {
	all := map[xsd.Position]string{}
	for _, t := range d.texts {
		if root, err := xsd.ParseMessage(t.location, t.text); err == nil { // it was read before
			documentation(root, all)
		}
	}
	return all
}

func documentation(n *xsd.DocumentNode, all map[xsd.Position]string) {
	for _, kid := range n.Children {
		switch kid.Name {
		case name("documentation"):
			add(all, n.Place, kid)
		case xsd.QName{Space: xmlns.XSD, Local: "annotation"}:
			for _, text := range kid.All(xsd.QName{Space: xmlns.XSD, Local: "documentation"}) {
				add(all, n.Place, text)
			}
		default:
			documentation(kid, all)
		}
	}
}

func add(all map[xsd.Position]string, at xsd.Position, n *xsd.DocumentNode) {
	var b strings.Builder
	written(&b, n)
	if all[at] != "" {
		all[at] += "\n\n"
	}
	all[at] += b.String()
}

// written writes the text of an element, and of those in it.
func written(b *strings.Builder, n *xsd.DocumentNode) {
	at := 0
	for _, kid := range n.Children {
		b.WriteString(n.Text[at:kid.Before])
		at = kid.Before
		written(b, kid)
	}
	b.WriteString(n.Text[at:])
}
