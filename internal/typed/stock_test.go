package typed_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// said is an envelope of a version of SOAP.
func said(envelope, header, body string) string {
	if header != "" {
		header = "<e:Header>" + header + "</e:Header>"
	}
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<e:Envelope xmlns:e="` + envelope +
		`" xmlns:xsd="` + xmlns.XSD + `" xmlns:xsi="` + xmlns.XSI + `">` + header + "<e:Body>" + body +
		"</e:Body></e:Envelope>"
}

const (
	soldOut = `<s:OutOfStock xmlns:s="urn:example:stock"><articleNumber>A-1</articleNumber>` +
		`<ordered>7</ordered><expectedAgain>2026-11-22T23:45:00Z</expectedAgain></s:OutOfStock>`
	denied = `<denial><personInCharge>N. N.</personInCharge><telephoneNumber>+41 1</telephoneNumber></denial>`
)

// failed is the fault of SOAP 1.1 with a detail.
func failed(detail string) string {
	return said(xmlns.SOAP11, "", "<e:Fault><faultcode>e:Server</faultcode><faultstring>not possible</faultstring>"+
		detail+"</e:Fault>")
}

// reserve is a request in the encoding of the operation, with header blocks.
func reserve(header, customer string) string {
	return said(xmlns.SOAP11, header, `<s:Reserve xmlns:s="urn:example:stock"><customerNumber>`+customer+
		`</customerNumber><reservation><articleNumber>A-1</articleNumber><quantityReserved>3</quantityReserved>`+
		`<reservedUntil>2026-11-22T23:45:00Z</reservedUntil></reservation><comment>-</comment></s:Reserve>`)
}

// session are the header blocks that stock.wsdl declares: one element, and one part of a type.
func session(credit, limit string) string {
	return `<s:Session xmlns:s="urn:example:stock"><credit>` + credit +
		`</credit><validUntil>2026-11-22T23:45:00Z</validUntil></s:Session><limit>` + limit + `</limit>`
}

// The first message of each kind takes at most 0.8 of what it takes without the WSDL, also faults,
// requests with header blocks, and those whose parts have types; the next ones take no more.
func TestFirstMessagesOfAllKinds(t *testing.T) {
	const encoded = `<s:Reserve xmlns:s="urn:example:encoded" ` +
		`e:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><customerNumber xsi:type="xsd:int">4711` +
		`</customerNumber><reservation xsi:type="t:Reservation" xmlns:t="urn:example:stock">` +
		`<articleNumber xsi:type="xsd:string">A-1</articleNumber><quantityReserved xsi:type="xsd:int">3` +
		`</quantityReserved><reservedUntil xsi:type="xsd:dateTime">2026-11-22T23:45:00Z</reservedUntil></reservation>` +
		`<comment xsi:type="xsd:string">-</comment></s:Reserve>`
	const fault12 = `<e:Fault><e:Code><e:Value>e:Receiver</e:Value></e:Code><e:Reason><e:Text xml:lang="en">no` +
		`</e:Text></e:Reason><e:Detail>` + soldOut + `</e:Detail></e:Fault>`
	for what, m := range map[string]string{
		"a fault":                     failed("<detail>" + soldOut + "</detail>"),
		"a fault whose part is typed": failed("<detail>" + denied + "</detail>"),
		"any other fault":             failed(""),
		"with something else":         failed("<detail><other>x</other></detail>"),
		"a fault of SOAP 1.2":         said(xmlns.SOAP12, "", fault12),
		"rpc, literal":                reserve("", "4711"),
		"its reply": said(xmlns.SOAP11, "", `<s:ReserveResponse xmlns:s="urn:example:stock"><reservationNumber>1`+
			`</reservationNumber></s:ReserveResponse>`),
		"rpc, encoded":       said(xmlns.SOAP11, "", encoded),
		"with header blocks": reserve(session("1", "2"), "4711"),
	} {
		c := load(t, filepath.Join("testdata", "stock.wsdl"))
		with, without := figures(t, c, m, m, m), figures(t, nil, m, m, m)
		t.Logf("%s: %d of %d bytes", what, size(with[0]), size(without[0]))
		most := int64(8)
		if what == "any other fault" || what == "with something else" {
			most = 10 // the vocabulary has as much of them as the WSDL
		}
		assert.LessOrEqual(t, 10*size(with[0]), most*size(without[0]), what)
		for i := range with[1:] {
			assert.LessOrEqual(t, size(with[1+i]), size(without[1+i]), what)
		}
		assert.Zero(t, sum(with, drifted), what)
	}
}

// What header blocks and details of faults contain has the types of the WSDL: what looks like an
// integer in the first message is none in the next, and costs nothing.
func TestHeadersAndFaultsAreTyped(t *testing.T) {
	c := load(t, filepath.Join("testdata", "stock.wsdl"))
	for what, messages := range map[string][2]string{
		"a header block":         {reserve(session("17", "2"), "1"), reserve(session("17.5", "2"), "1")},
		"a part of a type":       {reserve(session("1", "17"), "1"), reserve(session("1", "17.5"), "1")},
		"an element of a detail": {failed("<detail>" + soldOut + "</detail>"), failed(more)},
	} {
		with, without := figures(t, c, messages[0], messages[1]), figures(t, nil, messages[0], messages[1])
		assert.Zero(t, widened(with[1]), what)
		assert.Zero(t, rare(with[1]), what)
		assert.NotZero(t, widened(without[1])+rare(without[1]), what)
	}
}

var more = "<detail>" + strings.Replace(soldOut, ">7<", ">7.5<", 1) + "</detail>"

// A header of many elements leaves the own shape of a message what is in its Body.
func TestLargeHeadersAreCut(t *testing.T) {
	large := strings.Repeat(`<xs:element name="e" type="xs:int"/>`, 1000)
	c := load(t, changed(t, "stock.wsdl", `<xs:element name="credit" type="xs:decimal"/>`, large))
	own := c.Describe([]byte(reserve("", "1")), true).Own
	assert.Contains(t, string(own.Octets()), "reservedUntil")
}
