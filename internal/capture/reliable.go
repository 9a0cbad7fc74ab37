package capture

import (
	"bytes"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
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
	e, err := soap.Parse(body, reliableLimits)
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
