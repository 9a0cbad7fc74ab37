package soaprm

import (
	"context"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
)

// pollPrefix begins the addresses of endpoints that cannot be reached, and ask for what waits for
// them (WS-MakeConnection 1.1, section 3.1); each ends in a unique identifier.
const pollPrefix = xmlns.WSMC + "/anonymous?id="

// isPolled reports whether an address is one of those.
func isPolled(address string) bool {
	return strings.HasPrefix(address, pollPrefix) && len(address) > len(pollPrefix)
}

// hasConnection reports whether what goes to a place may go on the connection of the request that
// it answers: nothing else is said, or it is the address of who polls, for whom any such connection
// will do (WS-MakeConnection 1.1, section 3.1).
func hasConnection(place string) bool { return place == "" || isPolled(place) }

func connectionName(local string) soap.Name { return soap.Name{Space: xmlns.WSMC, Local: local} }

const makeConnectionAction = xmlns.WSMC + "/MakeConnection"

// makeConnection is the message that asks for what waits for an address (section 3.2).
func makeConnection(v soap.Version, p *addressing.Properties, address string) ([]byte, error) {
	return soap.Build(&soap.Envelope{Version: v, Header: p.Blocks(), Body: []soap.Element{{
		Name:     connectionName("MakeConnection"),
		Children: []soap.Element{{Name: connectionName("Address"), Text: address}},
	}}})
}

// pending is the header block that says whether more waits (section 3.3).
func pending(more bool) soap.Element {
	value := "false"
	if more {
		value = "true"
	}
	return soap.Element{Name: connectionName("MessagePending"), Attrs: []soap.Attr{{Name: "pending", Value: value}}}
}

type pendingKey struct{}

// isPending reports whether a message says that more waits.
func isPending(ctx context.Context) bool {
	more, _ := ctx.Value(pendingKey{}).(bool)
	return more
}

// isTrue reads an xs:boolean.
func isTrue(s string) bool { s = strings.TrimSpace(s); return s == "true" || s == "1" }
