package soaprm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
)

// Policy returns the policy of a service that takes sequences of some versions, and messages in
// none as well: elements for its bindings in a description (WS-RM Policy 1.1, section 2, and that
// of 1.0; WS-MakeConnection 1.1, section 3.4). Each version stands in the WS-Policy of its time.
func Policy(versions []Protocol) []byte {
	var b bytes.Buffer
	if slices.Contains(versions, V10) {
		fmt.Fprintf(&b, `<wsp:Policy xmlns:wsp="%s"><rmp:RMAssertion xmlns:rmp="%s" wsp:Optional="true"/></wsp:Policy>`,
			xmlns.WSPolicy200409, xmlns.WSRM10Policy)
	}
	if slices.Contains(versions, V11) {
		fmt.Fprintf(&b, `<wsp:Policy xmlns:wsp="%s"><rmp:RMAssertion xmlns:rmp="%s" wsp:Optional="true"><wsp:Policy>`+
			`<rmp:DeliveryAssurance><wsp:Policy><rmp:ExactlyOnce/><rmp:InOrder/></wsp:Policy></rmp:DeliveryAssurance>`+
			`</wsp:Policy></rmp:RMAssertion><wsmc:MCSupported xmlns:wsmc="%s" wsp:Optional="true"/></wsp:Policy>`,
			xmlns.WSPolicy, xmlns.WSRMPolicy, xmlns.WSMC)
	}
	return b.Bytes()
}

// PublishedPolicy is what a description says of sequences.
type PublishedPolicy struct {
	// Version is the latest one that the service takes; empty: none.
	Version Protocol
	// Assurances are the delivery assurances that it promises to its application, as their elements
	// are called: ExactlyOnce, AtLeastOnce, AtMostOnce, InOrder; empty: it does not say, as 1.0
	// cannot.
	Assurances []string
	// Addressing is the namespace of the latest WS-Addressing that the service asks for; empty: it
	// does not say.
	Addressing string
}

// addressingAssertions are the elements that ask for a version of WS-Addressing.
var addressingAssertions = map[xml.Name]string{
	{Space: xmlns.WSAMetadata, Local: "Addressing"}:          addressing.V200508,
	{Space: xmlns.WSAW, Local: "UsingAddressing"}:            addressing.V200508,
	{Space: xmlns.WSA200408Policy, Local: "UsingAddressing"}: addressing.V200408,
}

// ReadPolicy reads the assertions in a description, wherever they stand: policies that are referred
// to are in the same document. Errors: of XML.
func ReadPolicy(description []byte) (p PublishedPolicy, err error) {
	d := xml.NewDecoder(bytes.NewReader(description))
	assured := 0 // how deep in a DeliveryAssurance
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if space := addressingAssertions[t.Name]; p.Addressing != addressing.V200508 && space != "" {
				p.Addressing = space
			}
			switch {
			case t.Name == xml.Name{Space: xmlns.WSRMPolicy, Local: "RMAssertion"}:
				p.Version = V11
			case t.Name == xml.Name{Space: xmlns.WSRM10Policy, Local: "RMAssertion"} && p.Version == "":
				p.Version = V10
			case t.Name == xml.Name{Space: xmlns.WSRMPolicy, Local: "DeliveryAssurance"} || assured > 0:
				assured++
				known := slices.Contains(p.Assurances, t.Name.Local)
				if t.Name.Space == xmlns.WSRMPolicy && assured > 1 && !known {
					p.Assurances = append(p.Assurances, t.Name.Local)
				}
			}
		case xml.EndElement:
			assured = max(assured-1, 0)
		}
	}
}

// Lacks says which of some assurances the policy does not promise; empty: none, or it does not say
// what it promises.
func (p PublishedPolicy) Lacks(wanted ...string) string {
	if len(p.Assurances) == 0 {
		return ""
	}
	missing := slices.DeleteFunc(wanted, func(w string) bool { return slices.Contains(p.Assurances, w) })
	return strings.Join(missing, " and ")
}
