package soaprm_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// provoked is one way to a fault of a destination, which has had message 1 of a sequence.
type provoked struct {
	subcode string
	when    string
	version soaprm.Protocol // that has it; empty: both
	send    func(k *talk) []byte
	detail  func(k *talk) []string // as describe has it; nil: none
	ended   bool                   // the sequence takes nothing after that
	final   bool                   // the last acknowledgement is beside it
}

func ofSequence(k *talk) []string { return []string{"Identifier " + k.id} }

const nobody = "urn:uuid:00000000-0000-4000-8000-000000000000"

// as has a message made with another sequence.
func (k *talk) as(id string, make func() []byte) []byte {
	right := k.id
	defer func() { k.id = right }()
	k.id = id
	return make()
}

func ofNobody(make func(k *talk) []byte) func(k *talk) []byte {
	return func(k *talk) []byte { return k.as(nobody, func() []byte { return make(k) }) }
}

// acks is a message that acknowledges replies, alone or, with a number, beside a message.
func (k *talk) acks(n uint64, a header.Acknowledgement) []byte {
	if n > 0 {
		return k.message(n, func(b *header.Blocks) { b.Acknowledgements = []header.Acknowledgement{a} })
	}
	return k.make(k.version.Namespace()+"/SequenceAcknowledgement", "",
		header.Blocks{Acknowledgements: []header.Acknowledgement{a}})
}

func (k *talk) creates(change func(t *header.Terms)) []byte {
	anonymous := addressing.Anonymous(k.space())
	terms := &header.Terms{AcksTo: anonymous}
	change(terms)
	return k.make(k.version.Namespace()+"/CreateSequence", "", header.Blocks{Control: "CreateSequence", Terms: terms})
}

func acknowledging(ranges ...string) func(*talk) []string {
	return func(*talk) []string {
		return []string{"SequenceAcknowledgement [Identifier " + offered + " " + strings.Join(ranges, " ") + "]"}
	}
}

func replaced(octets []byte, from, to string) []byte {
	return bytes.ReplaceAll(octets, []byte(from), []byte(to))
}

// sheet is the table of faults of the standards (1.1, section 4; WS-MakeConnection 1.1, section 4).
var sheet = []provoked{
	{subcode: "UnknownSequence", when: "a message", send: ofNobody(func(k *talk) []byte { return k.message(2) }),
		detail: ofNoSequence},
	{subcode: "UnknownSequence", when: "an end", detail: ofNoSequence,
		send: ofNobody(func(k *talk) []byte { return k.about("TerminateSequence", 1) })},
	{subcode: "UnknownSequence", when: "a close", version: soaprm.V11, detail: ofNoSequence,
		send: ofNobody(func(k *talk) []byte { return k.about("CloseSequence", 1) })},
	{subcode: "UnknownSequence", when: "a question", detail: ofNoSequence, send: func(k *talk) []byte {
		return k.make(k.version.Namespace()+"/AckRequested", "", header.Blocks{AckRequested: []string{nobody}})
	}},
	{subcode: "UnknownSequence", when: "an acknowledgement", detail: ofNoSequence, send: func(k *talk) []byte {
		return k.acks(0, header.Acknowledgement{Sequence: nobody, Ranges: [][2]uint64{{1, 1}}})
	}},
	{subcode: "UnknownSequence", when: "the other version", detail: ofSequence, send: func(k *talk) []byte {
		other := map[soaprm.Protocol]soaprm.Protocol{soaprm.V10: soaprm.V11, soaprm.V11: soaprm.V10}[k.version]
		return replaced(k.message(2), k.version.Namespace()+`"`, other.Namespace()+`"`)
	}},
	{subcode: "SequenceTerminated", when: "a message", detail: ofSequence, ended: true, send: func(k *talk) []byte {
		k.post(k.about("TerminateSequence", 1))
		return k.message(2)
	}},
	{subcode: "SequenceTerminated", when: "a question", detail: ofSequence, ended: true, send: func(k *talk) []byte {
		k.post(k.about("TerminateSequence", 1))
		return k.make(k.version.Namespace()+"/AckRequested", "", header.Blocks{AckRequested: []string{k.id}})
	}},
	{subcode: "SequenceTerminated", when: "a message after its life", detail: ofSequence, ended: true,
		send: func(k *talk) []byte { return k.late(k.message(2)) }},
	{subcode: "SequenceTerminated", when: "a message again after its life", detail: ofSequence, ended: true,
		send: func(k *talk) []byte { return k.late(k.message(1)) }},
	{subcode: "SequenceTerminated", when: "a close after its life", version: soaprm.V11, detail: ofSequence,
		ended: true, send: func(k *talk) []byte { return k.late(k.about("CloseSequence", 1)) }},
	{subcode: "SequenceClosed", when: "a message", version: soaprm.V11, detail: ofSequence, ended: true, final: true,
		send: func(k *talk) []byte {
			k.post(k.about("CloseSequence", 1))
			return k.message(2)
		}},
	{subcode: "LastMessageNumberExceeded", when: "a message", version: soaprm.V10, detail: ofSequence, ended: true,
		send: func(k *talk) []byte {
			k.post(k.message(2, func(b *header.Blocks) { b.Last = true }))
			return k.message(3)
		}},
	{subcode: "MessageNumberRollover", when: "one beyond", detail: beyondMost, send: func(k *talk) []byte {
		return replaced(k.message(7), "MessageNumber>7<", "MessageNumber>9223372036854775808<")
	}},
	{subcode: "MessageNumberRollover", when: "far beyond", detail: beyondMost, send: func(k *talk) []byte {
		return replaced(k.message(7), "MessageNumber>7<", "MessageNumber>99999999999999999999999<")
	}},
	{subcode: "InvalidAcknowledgement", when: "never sent", detail: acknowledging("1-2"), send: func(k *talk) []byte {
		return k.acks(0, header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{1, 2}}})
	}},
	{subcode: "InvalidAcknowledgement", when: "never sent, beside a message", detail: acknowledging("1-1", "9-9"),
		send: func(k *talk) []byte {
			return k.acks(2, header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{1, 1}, {9, 9}}})
		}},
	{subcode: "InvalidAcknowledgement", when: "lacking what was never sent", detail: acknowledging("Nack 9"),
		send: func(k *talk) []byte {
			return k.acks(0, header.Acknowledgement{Sequence: offered, Nacks: []uint64{9}})
		}},
	{subcode: "InvalidAcknowledgement", when: "backwards", detail: acknowledging("2-1"), send: func(k *talk) []byte {
		return k.acks(0, header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{2, 1}}})
	}},
	{subcode: "InvalidAcknowledgement", when: "overlapping, beside a message", detail: acknowledging("1-1", "1-1"),
		send: func(k *talk) []byte {
			return k.acks(2, header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{1, 1}, {1, 1}}})
		}},
	{subcode: "CreateSequenceRefused", when: "an offer in use", send: func(k *talk) []byte {
		return k.creates(func(t *header.Terms) {
			t.Offer = &header.OfferedSequence{Sequence: offered, Endpoint: t.AcksTo}
		})
	}},
	{subcode: "CreateSequenceRefused", when: "too many", send: func(k *talk) []byte {
		k.cfg.MaxSequences = 2
		k.restart()
		k.post(k.creates(func(*header.Terms) {}))
		return k.creates(func(*header.Terms) {})
	}},
	{subcode: "CreateSequenceRefused", when: "an address elsewhere", send: func(k *talk) []byte {
		return k.creates(func(t *header.Terms) { t.AcksTo = "http://elsewhere.example/" })
	}},
	{subcode: "CreateSequenceRefused", when: "no duration", send: func(k *talk) []byte {
		return k.creates(func(t *header.Terms) { t.Expires = "an hour" })
	}},
	{subcode: "CreateSequenceRefused", when: "no AcksTo", send: func(k *talk) []byte {
		return replaced(k.creates(func(*header.Terms) {}), "AcksTo", "AcksFrom")
	}},
	{subcode: "CreateSequenceRefused", when: "the other version", send: func(k *talk) []byte {
		k.cfg.Versions = []soaprm.Protocol{map[soaprm.Protocol]soaprm.Protocol{
			soaprm.V10: soaprm.V11, soaprm.V11: soaprm.V10}[k.version]}
		k.restart()
		return k.creates(func(*header.Terms) {})
	}},
	{subcode: "WSRMRequired", when: "a message in no sequence", version: soaprm.V11, send: func(k *talk) []byte {
		k.cfg.Required = true
		k.restart()
		return k.make("urn:add", "<add>9</add>", header.Blocks{})
	}},
}

func ofNoSequence(*talk) []string { return []string{"Identifier " + nobody} }

func beyondMost(k *talk) []string {
	return append(ofSequence(k), "MaxMessageNumber 9223372036854775807")
}

// late is a message that comes when the life of the sequence is over.
func (k *talk) late(message []byte) []byte {
	k.clock.(*movedClock).to(25 * time.Hour)
	return message
}

// describe names elements with their texts, children and numbers.
func describe(list []soap.Element) (all []string) {
	for i := range list {
		e := &list[i]
		s := strings.TrimSpace(e.Name.Local + " " + strings.TrimSpace(e.Text))
		if lower := e.Attr("Lower"); lower != "" {
			s = lower + "-" + e.Attr("Upper")
		}
		if len(e.Children) > 0 {
			s += " [" + strings.Join(describe(e.Children), " ") + "]"
		}
		all = append(all, s)
	}
	return all
}

// detailOf is the detail of a fault about a sequence, wherever the version of SOAP has it.
func (k *talk) detailOf(answer *soap.Envelope, f *soap.Fault, version string) []string {
	if k.soap == soap.V12 {
		return describe(f.Detail)
	}
	assert.Empty(k.t, f.Detail, "SOAP 1.1 has none that is not about the Body")
	for i := range answer.Header {
		h := &answer.Header[i]
		if h.Name != (soap.Name{Space: header.Namespace(version), Local: "SequenceFault"}) {
			continue
		}
		list := h.Children[1:] // behind the code
		if version == "1.1" && len(list) > 0 {
			list = list[0].Children
		}
		return describe(list)
	}
	return nil
}

// check requires the answer to be the fault, told as the version of SOAP has it.
func (p *provoked) check(k *talk, octets []byte) {
	t := k.t
	status, answer, b := k.post(octets)
	require.NotNil(t, answer)
	f, ok := answer.Fault()
	require.True(t, ok, "%v", answer)
	assert.Equal(t, soap.FaultStatus(k.soap, soap.Client), status)
	namespace := header.Namespace(b.Version)
	assert.Equal(t, p.subcode, b.Fault)
	direct := p.subcode == "CreateSequenceRefused" || p.subcode == "WSRMRequired"
	if k.soap == soap.V12 || direct {
		assert.Equal(t, []string{namespace, p.subcode}, []string{f.SubcodeSpace, f.Subcode})
	}
	if k.soap == soap.V12 || !direct {
		assert.Equal(t, soap.Client, f.Code)
	}
	assert.NotEmpty(t, f.Reason)
	var want []string
	if p.detail != nil {
		want = p.detail(k)
	}
	assert.Equal(t, want, k.detailOf(answer, &f, b.Version))
	at, err := addressing.Read(answer)
	require.NoError(t, err)
	require.NotNil(t, at)
	asked, err := soap.Parse(octets, soap.Limits{})
	require.NoError(t, err)
	request, err := addressing.Read(asked)
	require.NoError(t, err)
	assert.Equal(t, request.MessageID, at.RelatesTo)
	action := addressing.FaultAction(k.space())
	if b.Version == "1.1" {
		action = namespace + "/fault"
	}
	assert.Equal(t, action, at.Action)
	if assert.Equal(t, p.final, len(b.Acknowledgements) > 0) && p.final {
		assert.Equal(t, []header.Acknowledgement{{Sequence: k.id, Ranges: [][2]uint64{{1, 1}}, Final: true}},
			b.Acknowledgements)
	}
}

// Every fault of the sheet is provoked in each version, with each WS-Addressing and each SOAP, and
// told rightly. Nothing that was taken is lost by it, and where the sequence goes on, it does.
func TestSheet(t *testing.T) {
	for _, p := range sheet {
		eachPairing(t, func(t *testing.T, k *talk) {
			if p.version != "" && p.version != k.version {
				t.Skip("the version does not have it")
			}
			k.clock = newMovedClock()
			k.restart()
			k.create()
			_, _, b := k.post(k.message(1))
			require.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
			p.check(k, p.send(k))
			want := []string{"1"}
			if p.subcode == "LastMessageNumberExceeded" {
				want = []string{"1", "2"}
			}
			if !p.ended && !k.cfg.Required {
				_, answer, b := k.post(k.message(2))
				require.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges, "%s: %v", p.when, answer)
				want = []string{"1", "2"}
			}
			k.restart()
			assert.Equal(t, want, slices.Sorted(slices.Values(k.entries())))
			assert.Equal(t, want, k.calls)
			if t.Failed() {
				t.Fatalf("%s: %s", p.subcode, p.when)
			}
		})
	}
}

// A sequence that has ended, or is over, makes place for another, and so does its offer. To end one
// that is over is no fault.
func TestEndedSequencesMakePlace(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		now := newMovedClock()
		k.clock, k.cfg.MaxSequences = now, 1
		k.restart()
		k.create()
		k.post(k.message(1))
		second := func() []byte { return k.creates(func(t *header.Terms) { t.Expires = "PT1H" }) }
		k.fault2(second(), "CreateSequenceRefused")
		k.post(k.about("TerminateSequence", 1))
		_, _, b := k.post(second())
		require.Equal(t, "CreateSequenceResponse", b.Control)
		k.id = b.Sequence
		_, _, b = k.post(k.message(1))
		require.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
		k.fault2(second(), "CreateSequenceRefused")
		now.to(61 * time.Minute)
		_, _, b = k.post(second())
		assert.Equal(t, "CreateSequenceResponse", b.Control)
		k.fault(k.message(2), "SequenceTerminated")
		status, _, b := k.post(k.about("TerminateSequence", 1))
		if k.version == soaprm.V10 {
			assert.Equal(t, http.StatusAccepted, status)
		} else {
			assert.Equal(t, "TerminateSequenceResponse", b.Control)
			assert.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
		}
		now.to(26 * time.Hour) // the first one is forgotten, with its offer
		k.create()
	})
}

// A message may ask about several sequences at once.
func TestAcknowledgementsOfSeveralSequences(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		k.create()
		k.post(k.message(1))
		first := k.id
		_, _, b := k.post(k.creates(func(*header.Terms) {}))
		k.id = b.Sequence
		for _, octets := range [][]byte{
			k.message(1, func(b *header.Blocks) { b.AckRequested = []string{nobody, first, k.id} }),
			k.make(k.version.Namespace()+"/AckRequested", "", header.Blocks{AckRequested: []string{k.id, first}}),
		} {
			_, _, b = k.post(octets)
			var of []string
			for _, ack := range b.Acknowledgements {
				of = append(of, fmt.Sprint(ack.Sequence, ack.Ranges))
			}
			assert.Equal(t, []string{fmt.Sprint(k.id, [][2]uint64{{1, 1}}), fmt.Sprint(first, [][2]uint64{{1, 1}})}, of)
		}
	})
}

// What a MakeConnection selects by anything but one Address is refused (WS-MakeConnection 1.1,
// section 4), in both versions of SOAP, and what waits still does.
func TestSelections(t *testing.T) {
	const namespace = "http://docs.oasis-open.org/ws-rx/wsmc/200702"
	address := "<c:Address>" + namespace + "/anonymous?id=1</c:Address>"
	identifier := `<r:Identifier xmlns:r="` + soaprm.V11.Namespace() + `">urn:x</r:Identifier>`
	eachPairing(t, func(t *testing.T, k *talk) {
		if k.version == soaprm.V10 {
			t.Skip("1.0 has no polling")
		}
		for _, c := range []struct {
			children, subcode string
			detail            []string
		}{
			{"", "MissingSelection", nil},
			{"<c:Address/>", "MissingSelection", nil},
			{identifier, "UnsupportedSelection", []string{"UnsupportedElement u:Identifier"}},
			{address + identifier, "UnsupportedSelection", []string{"UnsupportedElement u:Identifier"}},
			{address + address, "UnsupportedSelection", []string{"UnsupportedElement u:Address"}},
		} {
			octets := k.make(namespace+"/MakeConnection", `<c:MakeConnection xmlns:c="`+namespace+`">`+c.children+
				`</c:MakeConnection>`, header.Blocks{})
			status, answer, _ := k.post(octets)
			require.NotNil(t, answer, c.children)
			f, ok := answer.Fault()
			require.True(t, ok)
			assert.Equal(t, http.StatusInternalServerError, status)
			assert.Equal(t, []string{namespace, c.subcode}, []string{f.SubcodeSpace, f.Subcode})
			if k.soap == soap.V12 { // in SOAP 1.1 the name is the whole code
				assert.Equal(t, soap.Server, f.Code)
			}
			assert.Equal(t, c.detail, describe(f.Detail))
			p, err := addressing.Read(answer)
			require.NoError(t, err)
			assert.Equal(t, namespace+"/fault", p.Action)
			assert.NotEmpty(t, p.RelatesTo)
		}
		status, _, _ := k.post(k.make(namespace+"/MakeConnection", `<c:MakeConnection xmlns:c="`+namespace+`">`+address+
			`</c:MakeConnection>`, header.Blocks{}))
		assert.Equal(t, http.StatusAccepted, status)
	})
}

// A fault of a client about a sequence is taken, and is not answered by another one.
func TestFaultsOfClients(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		k.create()
		k.post(k.message(1))
		for _, required := range []bool{false, true} {
			k.cfg.Required = required
			k.restart()
			for _, subcode := range []string{"InvalidAcknowledgement", "UnknownSequence", "SequenceTerminated"} {
				status, answer, _ := k.post(k.faultFor(k.message(2), subcode))
				assert.Equal(t, http.StatusAccepted, status)
				assert.Nil(t, answer)
			}
		}
		assert.Equal(t, []string{"1"}, k.calls)
		_, _, b := k.post(k.message(2))
		assert.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
	})
}
