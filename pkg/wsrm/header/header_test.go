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

// spaces are the namespaces of the versions.
var spaces = map[string]string{"1.0": xmlns.WSRM10, "1.1": xmlns.WSRM}

const (
	anonymous = `<a:Address>` + xmlns.WSA + `/anonymous</a:Address>`
	terms     = `<r:Expires>PT10M</r:Expires><r:IncompleteSequenceBehavior>NoDiscard</r:IncompleteSequenceBehavior>`
)

func covers(lower, upper string) string {
	return `<r:AcknowledgementRange Lower="` + lower + `" Upper="` + upper + `"/>`
}

// acknowledges is a message that says one acknowledgement.
func acknowledges(version string, a header.Acknowledgement) header.Blocks {
	a.Sequence = there
	return header.Blocks{Version: version, Acknowledgements: []header.Acknowledgement{a}}
}

// example is a header and a body, and what they say.
type example struct {
	head, body string
	says       header.Blocks
}

// all are messages of every kind, by the names of the shared vectors where there are such.
var all = map[string]example{
	"wsrm10-03-app-1": {
		identified("Sequence", there, "<r:MessageNumber>1</r:MessageNumber>"), ``,
		header.Blocks{Version: "1.0", Sequence: there, Number: 1},
	},
	"wsrm10-06-last-message": {
		identified("Sequence", there, "<r:MessageNumber> 4 </r:MessageNumber><r:LastMessage/>"), ``,
		header.Blocks{Version: "1.0", Sequence: there, Number: 4, Last: true},
	},
	"wsrm10-04-ack-gap": {
		identified("SequenceAcknowledgement", there, covers("1", "1")+covers("3", "3")), ``,
		acknowledges("1.0", header.Acknowledgement{Ranges: [][2]uint64{{1, 1}, {3, 3}}}),
	},
	"wsrm10-05-nack": {
		identified("SequenceAcknowledgement", there, `<r:Nack>2</r:Nack>`), ``,
		acknowledges("1.0", header.Acknowledgement{Nacks: []uint64{2}}),
	},
	"wsrm10-08-terminate": {
		``, identified("TerminateSequence", there, ``),
		header.Blocks{Version: "1.0", Sequence: there, Control: "TerminateSequence"},
	},
	"wsrm11-03-app-3": {
		identified("Sequence", there, "<r:MessageNumber>3</r:MessageNumber>") +
			identified("AckRequested", there, ``), ``,
		header.Blocks{Version: "1.1", Sequence: there, Number: 3, AckRequested: []string{there}},
	},
	"wsrm11-05-nack": {
		identified("SequenceAcknowledgement", there, `<r:Nack>2</r:Nack>`), ``,
		acknowledges("1.1", header.Acknowledgement{Nacks: []uint64{2}}),
	},
	"wsrm11-06-close": {
		``, identified("CloseSequence", there, `<r:LastMsgNumber>3</r:LastMsgNumber>`),
		header.Blocks{Version: "1.1", Sequence: there, Control: "CloseSequence", LastNumber: 3},
	},
	"wsrm11-07-close-response": {
		identified("SequenceAcknowledgement", there, covers("1", "3")+`<r:Final/>`),
		identified("CloseSequenceResponse", there, ``),
		header.Blocks{
			Version: "1.1", Sequence: there, Control: "CloseSequenceResponse",
			Acknowledgements: []header.Acknowledgement{{Sequence: there, Ranges: [][2]uint64{{1, 3}}, Final: true}},
		},
	},
	"wsrm11-11-none-ack": {
		identified("SequenceAcknowledgement", there, `<r:None/>`), ``,
		acknowledges("1.1", header.Acknowledgement{None: true}),
	},
	"wsrm11-02-create-response": {
		``, identified("CreateSequenceResponse", there,
			terms+`<r:Accept><r:AcksTo><a:Address>http://svc.example/echo</a:Address></r:AcksTo></r:Accept>`),
		header.Blocks{
			Version: "1.1", Sequence: there, Control: "CreateSequenceResponse",
			Terms: &header.Terms{AcksTo: "http://svc.example/echo", Expires: "PT10M", Incomplete: "NoDiscard"},
		},
	},
	"wsrm11-01-create": {
		``, `<r:CreateSequence><r:AcksTo>` + anonymous + `</r:AcksTo><r:Expires>PT10M</r:Expires>` +
			identified("Offer", back, `<r:Endpoint>`+anonymous+`</r:Endpoint>`+terms) + `</r:CreateSequence>`,
		header.Blocks{
			Version: "1.1", Control: "CreateSequence",
			Terms: &header.Terms{AcksTo: xmlns.WSA + "/anonymous", Expires: "PT10M", Offer: &header.OfferedSequence{
				Sequence: back, Endpoint: xmlns.WSA + "/anonymous", Expires: "PT10M", Incomplete: "NoDiscard",
			}},
		},
	},
	"many": {
		identified("AckRequested", there, `<r:MaxMessageNumberUsed>9223372036854775807</r:MaxMessageNumberUsed>`) +
			identified("AckRequested", back, ``) + `<r:SequenceFault><r:FaultCode>r:UnknownSequence</r:FaultCode>` +
			`<r:Identifier>` + there + `</r:Identifier></r:SequenceFault>`,
		`<r:CreateSequence><r:AcksTo><Address xmlns="` + xmlns.WSA200408 + `">urn:a</Address></r:AcksTo>` +
			identified("Offer", back, `<r:Expires>PT0S</r:Expires>`) + `</r:CreateSequence>`,
		header.Blocks{
			Version: "1.0", AckRequested: []string{there, back}, Fault: "UnknownSequence", Control: "CreateSequence",
			Terms: &header.Terms{AcksTo: "urn:a", Offer: &header.OfferedSequence{Sequence: back, Expires: "PT0S"}},
		},
	},
	"fault": {
		`<r:SequenceFault><r:FaultCode>SequenceTerminated</r:FaultCode>` +
			identified("Detail", back, ``) + `</r:SequenceFault>`, ``,
		header.Blocks{Version: "1.1", Fault: "SequenceTerminated"},
	},
}

func TestRead(t *testing.T) {
	for name, c := range all {
		got := parse(t, envelope(spaces[c.says.Version], c.head, c.body))
		assert.Equal(t, &c.says, got, name)
	}
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
		"Retransmission.xml": {Version: "1.0", Sequence: "http://Business456.com/RM/ABC", Number: 2,
			AckRequested: []string{"http://Business456.com/RM/ABC"}},
		"Acknowledgment2.xml": {Version: "1.0",
			Acknowledgements: []header.Acknowledgement{{Sequence: "http://Business456.com/RM/ABC",
				Ranges: [][2]uint64{{1, 3}}}}},
	} {
		got := parse(t, shared.Read(t, filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "cxf"), file)))
		assert.Equal(t, &want, got, file)
	}
}

// A fault of SOAP 1.2 carries its code itself; one of SOAP 1.1 may, too.
func TestFaults(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		octets, err := soap.BuildFault(v, soap.Fault{Code: soap.Client, Subcode: "UnknownSequence",
			SubcodeSpace: xmlns.WSRM, Reason: "unknown",
			Detail: []soap.Element{{Name: soap.Name{Space: xmlns.WSRM, Local: "Identifier"}, Text: there}}})
		require.NoError(t, err)
		m := parse(t, octets)
		require.NotNil(t, m, "%s", octets)
		assert.Equal(t, "UnknownSequence", m.Fault)
	}
	octets, err := soap.BuildFault(soap.V12, soap.Fault{Code: soap.Client, Subcode: "Other", SubcodeSpace: "urn:other"})
	require.NoError(t, err)
	m := parse(t, octets)
	assert.Nil(t, m)
}

func envelope(space, head, body string) []byte {
	return []byte(`<s:Envelope xmlns:s="` + xmlns.SOAP12 + `" xmlns:r="` + space + `" xmlns:a="` + xmlns.WSA +
		`"><s:Header>` + head + `</s:Header><s:Body>` + body + `</s:Body></s:Envelope>`)
}

// What breaks a rule is named and left out; what stands beside it is kept.
func TestRefused(t *testing.T) {
	const id = `<r:Identifier>urn:x</r:Identifier>`
	for _, c := range []struct{ head, body, why string }{
		{`<r:Sequence/>`, ``, "no Identifier"},
		{`<r:Sequence>` + id + `</r:Sequence>`, ``, "no MessageNumber"},
		{`<r:Sequence>` + id + `<r:MessageNumber>0</r:MessageNumber></r:Sequence>`, ``, "not a message number"},
		{strings.Repeat(`<r:Sequence>`+id+`<r:MessageNumber>1</r:MessageNumber></r:Sequence>`, 2), ``, "a second one"},
		{`<r:AckRequested/>`, ``, "no Identifier"},
		{`<r:SequenceAcknowledgement>` + id + `</r:SequenceAcknowledgement>`, ``, "neither ranges"},
		{`<r:SequenceAcknowledgement>` + id +
			`<r:AcknowledgementRange Lower="5" Upper="4"/></r:SequenceAcknowledgement>`, ``, "overlap"},
		{`<r:SequenceAcknowledgement>` + id +
			covers("4", "9") + covers("1", "4") + `</r:SequenceAcknowledgement>`, ``, "overlap"},
		{`<r:SequenceAcknowledgement>` + id + `<r:AcknowledgementRange Lower="1"/></r:SequenceAcknowledgement>`, ``,
			"not a message number"},
		{`<r:SequenceAcknowledgement>` + id + `<r:Nack>1</r:Nack><r:Final/></r:SequenceAcknowledgement>`, ``,
			"nacks beside"},
		{`<r:SequenceAcknowledgement>` + id + `<r:Nack>1</r:Nack><r:None/></r:SequenceAcknowledgement>`, ``,
			"nacks beside"},
		{`<r:SequenceFault/>`, ``, "no FaultCode"},
		{``, `<r:CreateSequence/>`, "no AcksTo"},
		{``, `<r:CreateSequence><r:AcksTo/></r:CreateSequence>`, "no Address"},
		{``, `<r:CloseSequence/>`, "no Identifier"},
		{``, `<r:TerminateSequence>` + id + `<r:LastMsgNumber>x</r:LastMsgNumber></r:TerminateSequence>`,
			"not a message number"},
	} {
		m := parse(t, envelope(xmlns.WSRM, c.head+identified("AckRequested", there, ""), c.body))
		require.Len(t, m.Broken, 1, c.head+c.body)
		assert.Contains(t, m.Broken[0], c.why)
		m.Broken = nil
		if invalid := m.Invalid; strings.Contains(c.head, "Lower") || strings.Contains(c.head, "Nack") {
			require.Len(t, invalid, 1, c.head)
			assert.Equal(t, "SequenceAcknowledgement", invalid[0].Name.Local)
			m.Invalid = nil
		}
		if c.why == "a second one" {
			assert.Equal(t, "urn:x", m.Sequence)
			assert.EqualValues(t, 1, m.Number)
			m.Sequence, m.Number = "", 0
		}
		beside := &header.Blocks{Version: "1.1", AckRequested: []string{there}}
		assert.Equal(t, beside, m, c.head+c.body)
	}
	m := parse(t, envelope(xmlns.WSRM, `<r:UsesSequenceSSL/>`, `<r:Else/>`))
	assert.Equal(t, &header.Blocks{Version: "1.1"}, m)
	m = parse(t, envelope(xmlns.WSRM10,
		`<r:SequenceAcknowledgement>`+id+covers("3", "4")+`<r:None/>`+covers("1",
			"2")+`</r:SequenceAcknowledgement>`, ``))
	assert.Equal(t, [][2]uint64{{1, 2}, {3, 4}}, m.Acknowledgements[0].Ranges)
}

// Apache CXF writes None behind the ranges that it acknowledges. They stand, and so does all else
// that such a message says.
func TestNoneBesideRanges(t *testing.T) {
	m := parse(t, envelope(xmlns.WSRM, identified("Sequence", there, `<r:MessageNumber>2</r:MessageNumber>`)+
		identified("SequenceAcknowledgement", back, `<r:AcknowledgementRange Upper="1" Lower="1"/><r:None/>`), ``))
	assert.Equal(t, there, m.Sequence)
	assert.EqualValues(t, 2, m.Number)
	want := []header.Acknowledgement{{Sequence: back, Ranges: [][2]uint64{{1, 1}}}}
	assert.Equal(t, want, m.Acknowledgements)
	require.Len(t, m.Broken, 1)
	assert.Equal(t, "wsrm: SequenceAcknowledgement: ranges beside None", m.Broken[0])
}

// What is wrong is not listed without end.
func TestBrokenIsBounded(t *testing.T) {
	m := parse(t, envelope(xmlns.WSRM, strings.Repeat(`<r:Sequence/>`, 100), ``))
	assert.Len(t, m.Broken, 8)
}

// A number above the greatest one is told from what is none.
func TestRollover(t *testing.T) {
	for text, over := range map[string]bool{
		"9223372036854775807": false, "9223372036854775808": true, " 99999999999999999999 ": true,
		"-1": false, "x": false,
	} {
		m := parse(t, envelope(xmlns.WSRM, identified("Sequence", there, `<r:MessageNumber>`+text+`</r:MessageNumber>`),
			``))
		assert.Equal(t, over, m.Rollover, text)
		if over {
			assert.Zero(t, m.Number)
			assert.Equal(t, there, m.Sequence)
		}
	}
}

// What is written is read as what it says, and has the names, the order and the texts of the shared
// vectors.
func TestWrite(t *testing.T) {
	for name, c := range all {
		addressing := xmlns.WSA
		if c.says.Version == "1.0" {
			addressing = xmlns.WSA200408
		}
		head, body := c.says.Elements(addressing)
		octets, err := soap.Build(&soap.Envelope{Version: soap.V12, Header: head, Body: body})
		require.NoError(t, err)
		assert.Equal(t, &c.says, parse(t, octets), "%s: %s", name, octets)
	}
	dir := shared.Dir(t, "specs", "vectors", "wsrm")
	for _, path := range shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".xml" }) {
		e, err := soap.Parse(shared.Read(t, path), soap.Limits{})
		require.NoError(t, err)
		m := header.Parse(e)
		if m == nil {
			continue
		}
		addressing := xmlns.WSA
		if m.Version == "1.0" {
			addressing = xmlns.WSA200408
		}
		head, body := m.Elements(addressing)
		octets, err := soap.Build(&soap.Envelope{Version: e.Version, Header: head, Body: body})
		require.NoError(t, err)
		made, err := soap.Parse(octets, soap.Limits{})
		require.NoError(t, err)
		assert.Equal(t, described(e.Header, header.Namespace(m.Version)), described(made.Header, ""), path)
		if m.Control != "" {
			assert.Equal(t, described(e.Body, ""), described(made.Body, ""), path)
		}
	}
}

// described lists elements, of one namespace if it is not empty, with all that is in them.
func described(list []soap.Element, space string) (lines []string) {
	for i := range list {
		e := &list[i]
		if space != "" && e.Name.Space != space {
			continue
		}
		line := e.Name.String()
		if len(e.Children) == 0 {
			line += " " + e.Text
		}
		for _, a := range e.Attrs {
			line += " " + a.Name + "=" + a.Value
		}
		lines = append(lines, line)
		for _, inner := range described(e.Children, "") {
			lines = append(lines, " "+inner)
		}
	}
	return lines
}

// FuzzHeader: what is read is about a sequence that has a name, and keeps the rules.
func FuzzHeader(f *testing.F) {
	for _, c := range all {
		f.Add(envelope(spaces[c.says.Version], c.head, c.body))
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
			assert.NotEmpty(t, broken)
		}
		if len(m.Broken) == 0 && m.Fault == "" && m.Number > 0 {
			head, body := m.Elements(xmlns.WSA)
			again, err := soap.Build(&soap.Envelope{Version: soap.V12, Header: head, Body: body})
			require.NoError(t, err)
			e, err := soap.Parse(again, soap.Limits{MaxBytes: 1 << 20, MaxElements: 1 << 16})
			if err == nil {
				assert.Equal(t, m.Number, header.Parse(e).Number)
			}
		}
		if m.Number != 0 {
			assert.True(t, m.Control != "" || m.Sequence != "")
			assert.LessOrEqual(t, m.Number, uint64(1<<63-1))
		}
		for _, a := range m.Acknowledgements {
			assert.NotEmpty(t, a.Sequence)
			assert.Equal(t, len(a.Nacks) == 0, len(a.Ranges) > 0 || a.None)
			last := uint64(0)
			for _, r := range a.Ranges {
				assert.True(t, last < r[0] && r[0] <= r[1])
				last = r[1]
			}
		}
	})
}
