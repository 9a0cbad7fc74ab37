package unchanging

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// foundHeader is the Header of an envelope in bytes.
type foundHeader struct {
	version soap.Version
	prefix  string // of the envelope's namespace; empty: it is none that an attribute could use
	blocks  []foundBlock
}

// foundBlock is a header block, at [from:to] of its message.
type foundBlock struct {
	name      soap.Name
	from, to  int
	stays     bool   // for others than the receiver, or about security: nobody takes it out
	reference string // of a fragment; empty: the block is none
}

// maxBlocks bounds the header blocks that are looked at; messages with more travel whole.
const maxBlocks = 256

// headerOf finds the header blocks of a message within its first bytes; false: it has none, or it
// is nothing that these rules are for.
func headerOf(body []byte) (h foundHeader, ok bool) {
	body = body[:min(len(body), headerWindow)]
	d := xml.NewDecoder(bytes.NewReader(body))
	depth, in := 0, (*foundBlock)(nil)
	var text strings.Builder
	for {
		at := int(d.InputOffset())
		t, err := d.Token()
		if err != nil {
			return h, false
		}
		switch t := t.(type) {
		case xml.Directive:
			return h, false
		case xml.StartElement:
			depth++
			if !h.start(t, depth, body[at:]) || len(h.blocks) == maxBlocks {
				return h, false
			}
			switch {
			case depth == 3:
				h.blocks = append(h.blocks, foundBlock{name: soap.Name(t.Name), from: at, stays: h.stays(t)})
				in = &h.blocks[len(h.blocks)-1]
			case depth > 3:
				in.stays = in.stays || negotiate.IsSecured(t)
			}
			text.Reset()
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			if depth == 4 && in.name == contextName && soap.Name(t.Name) == identifier {
				in.reference = referenceIn(text.String())
			}
			if depth == 3 {
				in.to = int(d.InputOffset())
				if in.name == shortName {
					in.reference = referenceIn(text.String())
				}
			}
			if depth--; depth == 1 {
				return h, len(h.blocks) > 0
			}
		}
	}
}

// shortName is that of the block in the place of a fragment; older senders have a context of
// WS-Context there, with the reference as its identifier.
var shortName = soap.Name{Space: xmlns.Reference, Local: "r"}

var contextName = soap.Name{Space: xmlns.WSContext, Local: "context"}

var identifier = soap.Name{Space: xmlns.WSContext, Local: identifierName}

const identifierName = "context-identifier"

// referenceIn returns the text of an identifier if it is a reference.
func referenceIn(text string) string {
	if text = strings.TrimSpace(text); scopeOf(text) == "" {
		return ""
	}
	return strings.Clone(text)
}

// start looks at the tags down to the header blocks; false: there is no Header, or no more of it.
func (h *foundHeader) start(t xml.StartElement, depth int, raw []byte) bool {
	switch depth {
	case 1:
		switch t.Name {
		case xml.Name{Space: xmlns.SOAP11, Local: "Envelope"}:
			h.version = soap.V11
		case xml.Name{Space: xmlns.SOAP12, Local: "Envelope"}:
			h.version = soap.V12
		default:
			return false
		}
		h.prefix = prefixOf(raw)
	case 2:
		if prefixOf(raw) != h.prefix {
			h.prefix = ""
		}
		return t.Name == xml.Name{Space: h.version.Namespace(), Local: "Header"}
	}
	return true
}

// prefixOf returns the prefix of the tag that bytes begin with.
func prefixOf(tag []byte) string {
	name, _, ok := bytes.Cut(bytes.TrimPrefix(tag, []byte("<")), []byte(":"))
	if !ok || bytes.ContainsAny(name, " \t\r\n/>=\"'") {
		return ""
	}
	return string(name)
}

// stays reports whether a block is not only for the receiver of the message, or about security.
func (h *foundHeader) stays(t xml.StartElement) bool {
	return negotiate.IsSecured(t) || slices.ContainsFunc(t.Attr, func(a xml.Attr) bool {
		return a.Name.Space == h.version.Namespace() && (a.Name.Local == "actor" || a.Name.Local == "role") &&
			a.Value != ""
	})
}
