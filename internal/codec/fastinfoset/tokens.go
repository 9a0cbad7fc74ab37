package fastinfoset

import (
	"encoding/xml"
	"fmt"
)

// TokenReader gives a document as encoding/xml does, for [xml.NewTokenDecoder]. Names have their
// namespaces, also those of attributes; namespace attributes stand among these. A document type
// declaration is left out, with its instructions.
type TokenReader struct{ from *Reader }

// NewTokenReader reads tokens of the document with which a reader was reset.
func NewTokenReader(r *Reader) *TokenReader { return &TokenReader{from: r} }

// Token implements [xml.TokenReader]. Tokens stay valid.
func (t *TokenReader) Token() (xml.Token, error) {
	for {
		ev, err := t.from.Next()
		if err != nil {
			return nil, err
		}
		if t.from.grammar.inDoctype {
			continue
		}
		switch ev.Kind {
		case StartElement:
			return startToken(ev)
		case EndElement:
			return xml.EndElement{Name: xmlName(&ev.Name)}, nil
		case Characters:
			text, err := ev.Value.AppendText(nil)
			return xml.CharData(text), err
		case Comment:
			text, err := ev.Value.AppendText(nil)
			return xml.Comment(text), err
		case Instruction:
			text, err := ev.Value.AppendText(nil)
			return xml.ProcInst{Target: string(ev.Name.Local), Inst: text}, err
		case EntityReference:
			return nil, problem(Refused, t.from.Offset(), "%w",
				fmt.Errorf("the entity %.40q is not there", ev.Name.Local))
		default:
		}
	}
}

func startToken(ev *Event) (xml.Token, error) {
	start := xml.StartElement{Name: xmlName(&ev.Name), Attr: make([]xml.Attr, 0, len(ev.Declared)+len(ev.Attrs))}
	for _, d := range ev.Declared {
		name := xml.Name{Local: "xmlns"}
		if len(d.Prefix) > 0 {
			name = xml.Name{Space: "xmlns", Local: string(d.Prefix)}
		}
		start.Attr = append(start.Attr, xml.Attr{Name: name, Value: string(d.Space)})
	}
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		text, err := a.Value.AppendText(nil)
		if err != nil {
			return nil, err
		}
		start.Attr = append(start.Attr, xml.Attr{Name: xmlName(&a.Name), Value: string(text)})
	}
	return start, nil
}

func xmlName(n *Name) xml.Name { return xml.Name{Space: string(n.Space), Local: string(n.Local)} }
