package capture

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// reliableLimits are those of messages that are searched for WS-ReliableMessaging: headers are
// small, bodies need not be.
var reliableLimits = soap.Limits{MaxBytes: 1 << 20, MaxDepth: 256, MaxElements: 1 << 16}

// reliable returns what a message says about WS-RM sequences, nil if nothing, or nothing that could
// be read.
func reliable(body []byte) *header.Blocks {
	if !bytes.Contains(body, []byte(xmlns.WSRM)) && !bytes.Contains(body, []byte(xmlns.WSRM10)) {
		return nil
	}
	e, err := soap.Parse(body, reliableLimits)
	if err != nil {
		return nil
	}
	return header.Parse(e)
}
