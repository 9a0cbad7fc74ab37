package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// reliableLimits are those of messages that are searched for WS-ReliableMessaging: headers are
// small, bodies need not be.
var reliableLimits = soap.Limits{MaxBytes: 1 << 20, MaxDepth: 256, MaxElements: 1 << 16}

// reliable returns what a message says about WS-RM sequences, nil if nothing, or nothing that could
// be read, and the sequence that a fault about one names. Of a body that is not whole the header
// blocks are read.
func reliable(body []byte, whole bool) (b *header.Blocks, faulted string) {
	if !bytes.Contains(body, []byte(xmlns.WSRM)) && !bytes.Contains(body, []byte(xmlns.WSRM10)) {
		return nil, ""
	}
	e, err := soap.Parse(brief(body), reliableLimits)
	if err != nil || !whole {
		a, err := soap.Split(firstPart(body), reliableLimits)
		if err != nil {
			return nil, ""
		}
		e = &a.Envelope
	}
	if b = header.Parse(e); b != nil && b.Fault != "" {
		faulted = identifierIn(e.Header, header.Namespace(b.Version), "SequenceFault")
		if faulted == "" {
			faulted = identifierIn(e.Body, header.Namespace(b.Version), "Fault")
		}
	}
	return b, faulted
}

// brief is a message without those children of its Header and its Body that are neither elements of
// WS-RM nor a fault: to parse them takes ten times what it takes to find their ends.
func brief(body []byte) []byte {
	var out, ours []byte // the prefixes of WS-RM, as they are declared, each in front of a space
	tokens := xmltext.New(body)
	depth, from, cut := 0, 0, false
	for {
		t, err := tokens.Next()
		switch {
		case errors.Is(err, io.EOF) && !cut:
			return append(out, body[from:]...)
		case err != nil:
			return body
		}
		name := body[t.NameFrom:t.NameTo]
		if t.Kind == xmltext.End {
			depth--
		}
		opens := t.Kind == xmltext.Start || t.Kind == xmltext.Empty
		if opens && depth <= 2 {
			for _, a := range tokens.Attrs() {
				switch string(body[a.ValueFrom:a.ValueTo]) {
				case xmlns.WSRM, xmlns.WSRM10:
					ours = append(append(ours, body[a.NameFrom:a.NameTo]...), ' ')
				}
			}
		}
		if opens && depth == 2 && !names(ours, name) {
			out, cut = append(out, body[from:t.From]...), true
		}
		if cut && depth == 2 && t.Kind != xmltext.Start {
			from, cut = t.To, false
		}
		if t.Kind == xmltext.Start {
			depth++
		}
	}
}

// names reports whether an element may be one of WS-RM, whose prefixes are declared by ours, or a
// fault.
func names(ours, name []byte) bool {
	prefix, local, found := bytes.Cut(name, []byte{':'})
	if !found {
		return string(name) == "Fault" || bytes.Contains(ours, []byte("xmlns "))
	}
	return string(local) == "Fault" || bytes.Contains(ours, fmt.Appendf(nil, "xmlns:%s ", prefix))
}

// firstPart is a message without what precedes its envelope where that is the first of several
// parts: their MIME headers.
func firstPart(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("--")) {
		return body
	}
	name := max(bytes.Index(body, []byte("Envelope")), 0)
	return body[max(bytes.LastIndexByte(body[:name], '<'), 0):]
}

// identifierIn is the text of the first Identifier of a namespace in elements of a name.
func identifierIn(list []soap.Element, space, within string) string {
	for i := range list {
		if within != "" && list[i].Name.Local != within {
			continue
		}
		if list[i].Name == (soap.Name{Space: space, Local: "Identifier"}) {
			return strings.TrimSpace(list[i].Text)
		}
		if id := identifierIn(list[i].Children, space, ""); id != "" {
			return id
		}
	}
	return ""
}
