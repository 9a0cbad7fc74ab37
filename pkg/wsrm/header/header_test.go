package header_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

func parse(t testing.TB, octets []byte) *header.Blocks {
	t.Helper()
	e, err := soap.Parse(octets, soap.Limits{})
	require.NoError(t, err)
	return header.Parse(e)
}

const there, back = "urn:uuid:11111111-1111-4111-8111-111111111111", "urn:uuid:22222222-2222-4222-8222-222222222222"

// identified is an element about a sequence.
func identified(local, id, more string) string {
	return "<r:" + local + "><r:Identifier>" + id + "</r:Identifier>" + more + "</r:" + local + ">"
}

// all are messages of every kind, by the names of the shared vectors where there are such: header, body and what they say.
var all = map[string]struct {
	head, body string
	says       header.Blocks
}{
	"wsrm10-03-app-1":        {identified("Sequence", there, "<r:MessageNumber>1</r:MessageNumber>"), ``, header.Blocks{Version: header.V10, Sequence: &header.Sequence{Identifier: there, Number: 1}}},
	"wsrm10-06-last-message": {identified("Sequence", there, "<r:MessageNumber> 4 </r:MessageNumber><r:LastMessage/>"), ``, header.Blocks{Version: header.V10, Sequence: &header.Sequence{Identifier: there, Number: 4, Last: true}}},
	"wsrm10-04-ack-gap": {identified("SequenceAcknowledgement", there, `<r:AcknowledgementRange Lower="1" Upper="1"/><r:AcknowledgementRange Lower="3" Upper="3"/>`), ``,
		header.Blocks{Version: header.V10, Acknowledgements: []header.Acknowledgement{{Identifier: there, Ranges: []wsrm.Range{{First: 1, Last: 1}, {First: 3, Last: 3}}}}}},
	"wsrm10-05-nack":      {identified("SequenceAcknowledgement", there, `<r:Nack>2</r:Nack>`), ``, header.Blocks{Version: header.V10, Acknowledgements: []header.Acknowledgement{{Identifier: there, Nacks: []uint64{2}}}}},
	"wsrm10-08-terminate": {``, identified("TerminateSequence", there, ``), header.Blocks{Version: header.V10, Control: &header.Control{Kind: header.TerminateSequence, Identifier: there}}},
	"wsrm11-03-app-3": {identified("Sequence", there, "<r:MessageNumber>3</r:MessageNumber>") + identified("AckRequested", there, ``), ``,
		header.Blocks{Version: header.V11, Sequence: &header.Sequence{Identifier: there, Number: 3}, AckRequested: []header.AckRequested{{Identifier: there}}}},
	"wsrm11-05-nack":  {identified("SequenceAcknowledgement", there, `<r:Nack>2</r:Nack>`), ``, header.Blocks{Version: header.V11, Acknowledgements: []header.Acknowledgement{{Identifier: there, Nacks: []uint64{2}}}}},
	"wsrm11-06-close": {``, identified("CloseSequence", there, `<r:LastMsgNumber>3</r:LastMsgNumber>`), header.Blocks{Version: header.V11, Control: &header.Control{Kind: header.CloseSequence, Identifier: there, LastNumber: 3}}},
	"wsrm11-07-close-response": {identified("SequenceAcknowledgement", there, `<r:AcknowledgementRange Lower="1" Upper="3"/><r:Final/>`), identified("CloseSequenceResponse", there, ``),
		header.Blocks{Version: header.V11, Control: &header.Control{Kind: header.CloseSequenceResponse, Identifier: there},
			Acknowledgements: []header.Acknowledgement{{Identifier: there, Ranges: []wsrm.Range{{First: 1, Last: 3}}, Final: true}}}},
	"wsrm11-11-none-ack": {identified("SequenceAcknowledgement", there, `<r:None/>`), ``, header.Blocks{Version: header.V11, Acknowledgements: []header.Acknowledgement{{Identifier: there, None: true}}}},
	"wsrm11-02-create-response": {``, identified("CreateSequenceResponse", there,
		`<r:Expires>PT10M</r:Expires><r:IncompleteSequenceBehavior>NoDiscard</r:IncompleteSequenceBehavior><r:Accept><r:AcksTo><a:Address>http://svc.example/echo</a:Address></r:AcksTo></r:Accept>`),
		header.Blocks{Version: header.V11, Control: &header.Control{Kind: header.CreateSequenceResponse, Identifier: there, Expires: "PT10M", Incomplete: "NoDiscard", AcksTo: "http://svc.example/echo"}}},
	"wsrm11-01-create": {``, `<r:CreateSequence><r:AcksTo><a:Address>` + xmlns.WSA + `/anonymous</a:Address></r:AcksTo><r:Expires>PT10M</r:Expires>` + identified("Offer", back,
		`<r:Endpoint><a:Address>`+xmlns.WSA+`/anonymous</a:Address></r:Endpoint><r:Expires>PT10M</r:Expires><r:IncompleteSequenceBehavior>NoDiscard</r:IncompleteSequenceBehavior>`) + `</r:CreateSequence>`,
		header.Blocks{Version: header.V11, Control: &header.Control{Kind: header.CreateSequence, AcksTo: xmlns.WSA + "/anonymous", Expires: "PT10M",
			Offer: &header.Offer{Identifier: back, Endpoint: xmlns.WSA + "/anonymous", Expires: "PT10M", Incomplete: "NoDiscard"}}}},
	"many": {identified("AckRequested", there, `<r:MaxMessageNumberUsed>9223372036854775807</r:MaxMessageNumberUsed>`) + identified("AckRequested", back, ``) +
		`<r:SequenceFault><r:FaultCode>r:UnknownSequence</r:FaultCode><r:Identifier>` + there + `</r:Identifier></r:SequenceFault>`,
		`<r:CreateSequence><r:AcksTo><Address xmlns="` + xmlns.WSA200408 + `">urn:a</Address></r:AcksTo>` + identified("Offer", back, `<r:Expires>PT0S</r:Expires>`) + `</r:CreateSequence>`,
		header.Blocks{Version: header.V10, AckRequested: []header.AckRequested{{Identifier: there, MaxUsed: 1<<63 - 1}, {Identifier: back}},
			Fault:   &header.Fault{Code: "UnknownSequence", Identifier: there},
			Control: &header.Control{Kind: header.CreateSequence, AcksTo: "urn:a", Offer: &header.Offer{Identifier: back, Expires: "PT0S"}}}},
	"fault": {`<r:SequenceFault><r:FaultCode>SequenceTerminated</r:FaultCode>` + identified("Detail", back, ``) + `</r:SequenceFault>`, ``,
		header.Blocks{Version: header.V11, Fault: &header.Fault{Code: "SequenceTerminated", Identifier: back}}},
}

func TestRead(t *testing.T) {
	for name, c := range all {
		got := parse(t, envelope(c.says.Version.Namespace(), c.head, c.body))
		assert.Equal(t, &c.says, got, name)
	}
	assert.Equal(t, "1.0 1.1", header.V10.String()+" "+header.V11.String())
}

// The shared vectors say what they are described to say, and the messages of others are read.
func TestMessagesOfOthers(t *testing.T) {
	dir := shared.Dir(t, "specs", "vectors", "wsrm")
	seen := 0
	for _, path := range shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".xml" }) {
		name := strings.TrimSuffix(filepath.Base(path), ".xml")
		got := parse(t, shared.Read(t, path))
		if name == "wsrm11-10-makeconnection" {
			assert.Nil(t, got)
			continue
		}
		require.NotNil(t, got, name)
		if want, ok := all[name]; ok {
			assert.Equal(t, &want.says, got, name)
			seen++
		}
	}
	assert.Equal(t, 12, seen)
	for file, want := range map[string]header.Blocks{
		"Retransmission.xml":  {Version: header.V10, Sequence: &header.Sequence{Identifier: "http://Business456.com/RM/ABC", Number: 2}, AckRequested: []header.AckRequested{{Identifier: "http://Business456.com/RM/ABC"}}},
		"Acknowledgment2.xml": {Version: header.V10, Acknowledgements: []header.Acknowledgement{{Identifier: "http://Business456.com/RM/ABC", Ranges: []wsrm.Range{{First: 1, Last: 3}}}}},
	} {
		got := parse(t, shared.Read(t, filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "cxf"), file)))
		assert.Equal(t, &want, got, file)
	}
}

// A fault of SOAP 1.2 carries its code itself; one of SOAP 1.1 may, too.
func TestFaults(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		octets, err := soap.BuildFault(v, soap.Fault{Code: soap.Client, Subcode: "UnknownSequence", SubcodeSpace: xmlns.WSRM, Reason: "unknown",
			Detail: []soap.Element{{Name: soap.Name{Space: xmlns.WSRM, Local: "Identifier"}, Text: there}}})
		require.NoError(t, err)
		m := parse(t, octets)
		require.NotNil(t, m, "%s", octets)
		assert.Equal(t, &header.Fault{Code: "UnknownSequence", Identifier: there}, m.Fault)
	}
	octets, err := soap.BuildFault(soap.V12, soap.Fault{Code: soap.Client, Subcode: "Other", SubcodeSpace: "urn:other"})
	require.NoError(t, err)
	m := parse(t, octets)
	assert.Nil(t, m)
}

func envelope(space, head, body string) []byte {
	return []byte(`<s:Envelope xmlns:s="` + xmlns.SOAP12 + `" xmlns:r="` + space + `" xmlns:a="` + xmlns.WSA + `"><s:Header>` + head + `</s:Header><s:Body>` + body + `</s:Body></s:Envelope>`)
}

// What breaks a rule is named and left out; what stands beside it is kept.
func TestRefused(t *testing.T) {
	const id = `<r:Identifier>urn:x</r:Identifier>`
	for _, c := range []struct{ head, body, why string }{
		{`<r:Sequence/>`, ``, "no Identifier"},
		{`<r:Sequence>` + id + `</r:Sequence>`, ``, "no MessageNumber"},
		{`<r:Sequence>` + id + `<r:MessageNumber>0</r:MessageNumber></r:Sequence>`, ``, "not a message number"},
		{`<r:Sequence>` + id + `<r:MessageNumber>9223372036854775808</r:MessageNumber></r:Sequence>`, ``, "not a message number"},
		{strings.Repeat(`<r:Sequence>`+id+`<r:MessageNumber>1</r:MessageNumber></r:Sequence>`, 2), ``, "a second one"},
		{`<r:AckRequested/>`, ``, "no Identifier"},
		{`<r:SequenceAcknowledgement>` + id + `</r:SequenceAcknowledgement>`, ``, "neither ranges"},
		{`<r:SequenceAcknowledgement>` + id + `<r:AcknowledgementRange Lower="5" Upper="4"/></r:SequenceAcknowledgement>`, ``, "overlap"},
		{`<r:SequenceAcknowledgement>` + id + `<r:AcknowledgementRange Lower="4" Upper="9"/><r:AcknowledgementRange Lower="1" Upper="4"/></r:SequenceAcknowledgement>`, ``, "overlap"},
		{`<r:SequenceAcknowledgement>` + id + `<r:AcknowledgementRange Lower="1"/></r:SequenceAcknowledgement>`, ``, "not a message number"},
		{`<r:SequenceAcknowledgement>` + id + `<r:Nack>1</r:Nack><r:Final/></r:SequenceAcknowledgement>`, ``, "nacks beside"},
		{`<r:SequenceAcknowledgement>` + id + `<r:Nack>1</r:Nack><r:None/></r:SequenceAcknowledgement>`, ``, "nacks beside"},
		{`<r:SequenceFault/>`, ``, "no FaultCode"},
		{``, `<r:CreateSequence/>`, "no AcksTo"},
		{``, `<r:CreateSequence><r:AcksTo/></r:CreateSequence>`, "no Address"},
		{``, `<r:CloseSequence/>`, "no Identifier"},
		{``, `<r:TerminateSequence>` + id + `<r:LastMsgNumber>x</r:LastMsgNumber></r:TerminateSequence>`, "not a message number"},
	} {
		m := parse(t, envelope(xmlns.WSRM, c.head+identified("AckRequested", there, ""), c.body))
		require.Len(t, m.Broken, 1, c.head+c.body)
		assert.ErrorContains(t, m.Broken[0], c.why)
		assert.NotEmpty(t, m.Broken[0].Element)
		assert.Error(t, m.Broken[0].Unwrap())
		m.Broken = nil
		if c.why == "a second one" {
			assert.Equal(t, &header.Sequence{Identifier: "urn:x", Number: 1}, m.Sequence)
			m.Sequence = nil
		}
		beside := &header.Blocks{Version: header.V11, AckRequested: []header.AckRequested{{Identifier: there}}}
		assert.Equal(t, beside, m, c.head+c.body)
	}
	m := parse(t, envelope(xmlns.WSRM, `<r:UsesSequenceSSL/>`, `<r:Else/>`))
	assert.Equal(t, &header.Blocks{Version: header.V11}, m)
	m = parse(t, envelope(xmlns.WSRM10, `<r:SequenceAcknowledgement>`+id+`<r:AcknowledgementRange Lower="3" Upper="4"/><r:None/><r:AcknowledgementRange Lower="1" Upper="2"/></r:SequenceAcknowledgement>`, ``))
	assert.Equal(t, []wsrm.Range{{First: 1, Last: 2}, {First: 3, Last: 4}}, m.Acknowledgements[0].Ranges)
}

// Apache CXF writes None behind the ranges that it acknowledges. They stand, and so does all else
// that such a message says.
func TestNoneBesideRanges(t *testing.T) {
	m := parse(t, envelope(xmlns.WSRM, identified("Sequence", there, `<r:MessageNumber>2</r:MessageNumber>`)+
		identified("SequenceAcknowledgement", back, `<r:AcknowledgementRange Upper="1" Lower="1"/><r:None/>`), ``))
	assert.Equal(t, &header.Sequence{Identifier: there, Number: 2}, m.Sequence)
	want := []header.Acknowledgement{{Identifier: back, Ranges: []wsrm.Range{{First: 1, Last: 1}}}}
	assert.Equal(t, want, m.Acknowledgements)
	require.Len(t, m.Broken, 1)
	assert.EqualError(t, m.Broken[0], "wsrm: SequenceAcknowledgement: ranges beside None")
}

// What is wrong is not listed without end.
func TestBrokenIsBounded(t *testing.T) {
	m := parse(t, envelope(xmlns.WSRM, strings.Repeat(`<r:Sequence/>`, 100), ``))
	assert.Len(t, m.Broken, 8)
}

// FuzzHeader: what is read is about a sequence that has a name, and keeps the rules.
func FuzzHeader(f *testing.F) {
	for _, c := range all {
		f.Add(envelope(c.says.Version.Namespace(), c.head, c.body))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		e, err := soap.Parse(octets, soap.Limits{})
		if err != nil {
			return
		}
		m := header.Parse(e)
		if m == nil {
			return
		}
		for _, broken := range m.Broken {
			assert.NotEmpty(t, broken.Element)
		}
		if m.Sequence != nil {
			assert.True(t, m.Sequence.Identifier != "" && m.Sequence.Number-1 < 1<<63-1)
		}
		for _, a := range m.Acknowledgements {
			assert.NotEmpty(t, a.Identifier)
			assert.Equal(t, len(a.Nacks) == 0, len(a.Ranges) > 0 || a.None)
			last := uint64(0)
			for _, r := range a.Ranges {
				assert.True(t, last < r.First && r.First <= r.Last)
				last = r.Last
			}
		}
	})
}
