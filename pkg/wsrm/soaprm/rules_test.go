package soaprm_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// post sends a message to the endpoint, and reads the answer; nil if that is empty.
func (e *ends) post(octets []byte) (status int, answer *soap.Envelope, b *header.Blocks) {
	e.t.Helper()
	r := httptest.NewRequest(http.MethodPost, where, bytes.NewReader(octets))
	r.Header.Set("Content-Type", "text/xml; charset=utf-8")
	w := httptest.NewRecorder()
	e.link.handler.ServeHTTP(w, r)
	if w.Body.Len() == 0 {
		return w.Code, nil, &header.Blocks{}
	}
	answer, err := soap.Parse(w.Body.Bytes(), soap.Limits{})
	require.NoError(e.t, err, "%s", w.Body)
	b = header.Parse(answer)
	if b == nil {
		b = &header.Blocks{}
	}
	require.Empty(e.t, b.Broken)
	return w.Code, answer, b
}

// talk is the raw side of a conversation in one version.
type talk struct {
	*ends
	pairing
	id string // of the sequence
}

const offered = "urn:uuid:22222222-2222-4222-8222-222222222222"

func (k *talk) space() string {
	if k.pairing.space != "" {
		return k.pairing.space
	}
	return k.version.Addressing()
}

// make is a message of the protocol, or, with a body, of an application.
func (k *talk) make(action, body string, b header.Blocks) []byte {
	b.Version = string(k.version)
	p := addressing.Properties{Space: k.space(), Action: action, MessageID: addressing.NewID(), To: where}
	head, inner := b.Elements(k.space())
	octets, err := soap.Build(&soap.Envelope{Version: k.soap, Header: append(p.Blocks(), head...), Body: inner})
	require.NoError(k.t, err)
	return bytes.Replace(octets, []byte("<soap:Body/>"), []byte("<soap:Body>"+body+"</soap:Body>"), 1)
}

func (k *talk) create() {
	anonymous := addressing.Anonymous(k.space())
	_, answer, b := k.post(k.make(k.version.Namespace()+"/CreateSequence", "", header.Blocks{Control: "CreateSequence",
		Terms: &header.Terms{AcksTo: anonymous, Offer: &header.OfferedSequence{Sequence: offered,
			Endpoint: anonymous}}}))
	require.Equal(k.t, "CreateSequenceResponse", b.Control, "%v", answer)
	k.id = b.Sequence
	require.NotEmpty(k.t, b.Terms.AcksTo) // the offer is accepted
}

func (k *talk) message(n uint64, more ...func(*header.Blocks)) []byte {
	b := header.Blocks{Sequence: k.id, Number: n}
	for _, m := range more {
		m(&b)
	}
	return k.make("urn:add", fmt.Sprintf("<add>%d</add>", n), b)
}

func (k *talk) about(name string, last uint64) []byte {
	return k.make(k.version.Namespace()+"/"+name, "", header.Blocks{Control: name, Sequence: k.id, LastNumber: last})
}

// fault requires that an answer is a fault with a subcode, told as the version of SOAP has it.
func (k *talk) fault(octets []byte, subcode string) {
	k.t.Helper()
	status, answer, b := k.post(octets)
	require.NotNil(k.t, answer)
	f, ok := answer.Fault()
	require.True(k.t, ok, "%v", answer)
	assert.Equal(k.t, soap.FaultStatus(k.soap, soap.Client), status)
	assert.Equal(k.t, subcode, b.Fault)
	if k.soap == soap.V12 {
		assert.Equal(k.t, soap.Client, f.Code)
		assert.Equal(k.t, subcode, f.Subcode)
		assert.Equal(k.t, k.version.Namespace(), f.SubcodeSpace)
	}
	p, err := addressing.Read(answer)
	require.NoError(k.t, err)
	require.NotNil(k.t, p)
	assert.NotEmpty(k.t, p.RelatesTo)
	if k.version == soaprm.V11 {
		assert.Equal(k.t, k.version.Namespace()+"/fault", p.Action)
	}
}

func eachPairing(t *testing.T, do func(*testing.T, *talk)) {
	for i, p := range pairings {
		t.Run(fmt.Sprint(p.version, " ", p.soap, " ", i), func(t *testing.T) {
			do(t, &talk{ends: newEnds(t, uint64(i), 0), pairing: p})
		})
	}
}

// Every fault of a destination is provoked and told rightly, and nothing that was taken is lost by
// it.
func TestFaults(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		k.create()
		_, _, b := k.post(k.message(1))
		require.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
		require.Equal(t, offered, b.Sequence)

		right := k.id
		k.id = "urn:uuid:00000000-0000-4000-8000-000000000000"
		k.fault(k.message(2), "UnknownSequence")
		k.fault(k.about("TerminateSequence", 0), "UnknownSequence")
		k.id = right

		over := bytes.Replace(k.message(7), []byte("MessageNumber>7<"), []byte("MessageNumber>9223372036854775808<"), 1)
		k.fault(over, "MessageNumberRollover")

		wrong := header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{1, 99}}}
		k.fault(k.make("urn:add", "", header.Blocks{Acknowledgements: []header.Acknowledgement{wrong}}),
			"InvalidAcknowledgement")
		k.fault(k.message(2, func(b *header.Blocks) { b.Acknowledgements = append(b.Acknowledgements, wrong) }),
			"InvalidAcknowledgement")

		refused := k.make(k.version.Namespace()+"/CreateSequence", "", header.Blocks{Control: "CreateSequence",
			Terms: &header.Terms{AcksTo: "http://elsewhere.example/"}})
		k.fault2(refused, "CreateSequenceRefused")

		if k.version == soaprm.V10 {
			_, _, b = k.post(k.message(2, func(b *header.Blocks) { b.Last = true }))
			require.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
			k.fault(k.message(3), "LastMessageNumberExceeded")
		} else {
			k.post(k.message(2))
			_, _, b = k.post(k.about("CloseSequence", 2))
			require.Equal(t, "CloseSequenceResponse", b.Control)
			assert.True(t, b.Acknowledgements[0].Final)
			k.fault(k.message(3), "SequenceClosed")
			_, _, b = k.post(k.message(2)) // what is done is acknowledged again
			assert.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
		}
		k.restart() // it is all in the store
		status, _, b := k.post(k.about("TerminateSequence", 2))
		if k.version == soaprm.V10 {
			assert.Equal(t, http.StatusAccepted, status)
		} else {
			assert.Equal(t, "TerminateSequenceResponse", b.Control)
			_, _, b = k.post(k.about("TerminateSequence", 2)) // the answer may get lost
			assert.Equal(t, "TerminateSequenceResponse", b.Control)
		}
		k.fault(k.message(2), "SequenceTerminated")
		k.restart()
		k.fault(k.message(3), "SequenceTerminated")
		assert.Equal(t, []string{"1", "2"}, k.entries())
		assert.Equal(t, []string{"1", "2"}, k.calls)
	})
}

// fault2 is a fault of CreateSequence: SOAP 1.1 has its name in the code itself.
func (k *talk) fault2(octets []byte, subcode string) {
	k.t.Helper()
	_, answer, _ := k.post(octets)
	f, ok := answer.Fault()
	require.True(k.t, ok)
	assert.Equal(k.t, subcode, f.Subcode)
	assert.Equal(k.t, k.version.Namespace(), f.SubcodeSpace)
}

// movedClock is a clock that only moves when it is told to.
type movedClock struct {
	clock.Clock
	from time.Time
	by   atomic.Int64
}

func newMovedClock() *movedClock { return &movedClock{Clock: clock.Real(), from: time.Now()} }

func (c *movedClock) Now() time.Time { return c.from.Add(time.Duration(c.by.Load())) }

// to moves it to a time since its beginning.
func (c *movedClock) to(d time.Duration) { c.by.Store(int64(d)) }

// A sequence outlives neither what was granted nor what was asked for.
func TestExpiry(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		now := newMovedClock()
		k.clock = now
		k.cfg.Expires = time.Hour
		k.restart()
		k.create()
		k.post(k.message(1))
		now.to(59 * time.Minute)
		_, _, b := k.post(k.message(2))
		assert.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
		now.to(61 * time.Minute)
		k.fault(k.message(3), "SequenceTerminated")
		assert.Equal(t, []string{"1", "2"}, k.entries())
	})
}

// What is not in a sequence is refused where that is required, and passes where it is not.
func TestRequired(t *testing.T) {
	e := newEnds(t, 1, 0)
	_, answer, _ := e.post(entry(soap.V11, 1))
	_, isFault := answer.Fault()
	assert.False(t, isFault)
	e.cfg.Required = true
	e.restart()
	k := &talk{ends: e, pairing: pairing{soaprm.V11, addressing.V200508, soap.V12}}
	k.fault2(k.make("urn:add", "<add>1</add>", header.Blocks{}), "WSRMRequired")
}

// A header block that must be understood and is not stops a message before anything happens, in a
// sequence as outside.
func TestMustUnderstandComesFirst(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		k.create()
		attr := []byte(`<x xmlns="urn:x" xmlns:s="` + k.soap.Namespace() + `" s:mustUnderstand="1"/></soap:Header>`)
		for _, m := range [][]byte{k.message(1), k.make("urn:add", "<add>1</add>", header.Blocks{})} {
			_, answer, _ := k.post(bytes.Replace(m, []byte("</soap:Header>"), attr, 1))
			f, _ := answer.Fault()
			assert.Equal(t, soap.MustUnderstand, f.Code)
		}
		assert.Empty(t, k.calls)
		_, _, b := k.post(k.message(1))
		assert.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
		assert.Equal(t, []string{"1"}, k.calls)
	})
}

// A message behind a gap waits, and is answered without a reply if the gap stays; it is not
// acknowledged. A duplicate gets the reply that there was, until that is acknowledged.
func TestGapsAndDuplicates(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		k.create()
		status, _, b := k.post(k.message(2))
		assert.Equal(t, http.StatusAccepted, status)
		if k.version == soaprm.V11 {
			assert.True(t, b.Acknowledgements[0].None)
		} else {
			assert.Empty(t, b.Acknowledgements)
		}
		k.post(k.message(1))
		_, answer, b := k.post(k.message(2))
		require.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
		assert.Equal(t, "2", answer.Body[0].Text)
		number := b.Number
		k.restart()
		_, _, b = k.post(k.message(2))
		assert.Equal(t, number, b.Number)
		acked := header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{1, 2}}}
		status, _, b = k.post(k.message(2, func(b *header.Blocks) {
			b.Acknowledgements = append(b.Acknowledgements, acked)
		}))
		assert.Equal(t, http.StatusAccepted, status)
		assert.Zero(t, b.Number)
		assert.Equal(t, []string{"1", "2"}, k.calls)
		_, _, b = k.post(k.make(k.version.Namespace()+"/AckRequested", "", header.Blocks{AckRequested: []string{k.id}}))
		assert.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
	})
}

// Each message of the shared exchanges that a client sends is answered as theirs is: those texts,
// with the identifier that the endpoint gave.
func TestVectorsOfClients(t *testing.T) {
	for version, names := range map[string][]string{
		"wsrm10": {"01-create", "03-app-1", "03-app-3", "06-last-message", "08-terminate"},
		"wsrm11": {"01-create", "03-app-1", "03-app-3", "06-close", "08-terminate"},
	} {
		t.Run(version, func(t *testing.T) {
			e := newEnds(t, 1, 0)
			e.cfg.Patience = time.Second
			e.restart()
			dir := shared.Dir(t, "specs", "vectors", "wsrm")
			id := ""
			send := func(name string, change func(string) string) (int, *soap.Envelope, *header.Blocks) {
				text := string(shared.Read(t, filepath.Join(dir, version+"-"+name+".xml")))
				text = strings.ReplaceAll(text, "urn:uuid:11111111-1111-4111-8111-111111111111", id)
				if change != nil {
					text = change(text)
				}
				return e.post([]byte(text))
			}
			_, _, b := send(names[0], nil)
			require.Equal(t, "CreateSequenceResponse", b.Control)
			assert.Equal(t, "http://svc.example/echo", b.Terms.AcksTo)
			assert.Equal(t, "PT600S", b.Terms.Expires)
			id = b.Sequence
			_, _, b = send(names[1], nil)
			assert.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
			_, _, b = send(names[2], nil) // 3, before 2: it waits, and asks for an acknowledgement
			assert.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
			second := func(text string) string {
				return strings.Replace(text, "MessageNumber>1<", "MessageNumber>2<", 1)
			}
			_, _, b = send(names[1], second)
			assert.Equal(t, [][2]uint64{{1, 3}}, b.Acknowledgements[0].Ranges)
			_, _, b = send(names[3], nil)
			if version == "wsrm10" {
				assert.Equal(t, [][2]uint64{{1, 4}}, b.Acknowledgements[0].Ranges)
			} else {
				assert.Equal(t, "CloseSequenceResponse", b.Control)
				assert.True(t, b.Acknowledgements[0].Final)
			}
			status, _, b := send(names[4], nil)
			if version == "wsrm10" {
				assert.Equal(t, http.StatusAccepted, status)
			} else {
				assert.Equal(t, "TerminateSequenceResponse", b.Control)
			}
			assert.Len(t, e.calls, 3)
		})
	}
}

// A source bears the answers of the shared exchanges: an acknowledgement with a gap and a nack have
// it send again what is missing, nothing acknowledged has it send again, and the end is as theirs.
func TestVectorsOfServices(t *testing.T) {
	for _, p := range []pairing{
		{soaprm.V10, addressing.V200408, soap.V11}, {soaprm.V11, addressing.V200508, soap.V12},
	} {
		t.Run(string(p.version), func(t *testing.T) {
			dir := shared.Dir(t, "specs", "vectors", "wsrm")
			prefix := "wsrm" + strings.Replace(string(p.version), ".", "", 1)
			ranges := regexp.MustCompile(`<wsrm:AcknowledgementRange.*/>`)
			var seen []string
			var mu sync.Mutex
			service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				octets, _ := io.ReadAll(r.Body)
				e, err := soap.Parse(octets, soap.Limits{})
				assert.NoError(t, err)
				b := header.Parse(e)
				what := cmp.Or(b.Control, fmt.Sprint(b.Number))
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, what)
				times := strings.Count(strings.Join(seen, " "), what)
				answer := map[string]string{
					"CreateSequence": "02-create-response", "1": "11-none-ack", "CloseSequence": "07-close-response",
					"2": "05-nack", "3": "04-ack-gap", "4": "04-ack-gap", "TerminateSequence": "09-terminate-response",
				}[what]
				all := what == "2" && times > 2
				if all {
					answer = "04-ack-gap"
				}
				path := filepath.Join(dir, prefix+"-"+answer+".xml")
				if _, err := os.Stat(path); err != nil || what == "2" && times == 1 {
					w.WriteHeader(http.StatusAccepted) // what 1.0 has no message for; the first 2 gets lost
					return
				}
				text := shared.Read(t, path)
				if all || what == "4" {
					last := map[string]string{"2": "3", "4": "4"}[what]
					text = ranges.ReplaceAll(text, []byte(`<wsrm:AcknowledgementRange Lower="1" Upper="`+last+`"/>`))
				}
				_, _ = w.Write(text)
			})
			e := newEnds(t, 1, 0)
			e.link.handler = service
			s := e.source(p.version, p.space, p.soap)
			for k := range 3 {
				_, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, k), OneWay: true})
				require.NoError(t, err)
			}
			require.NoError(t, s.Finish(t.Context()))
			require.NoError(t, s.Close())
			assert.GreaterOrEqual(t, strings.Count(strings.Join(seen, " "), "2"), 3)
			assert.Equal(t, "TerminateSequence", seen[len(seen)-1])
		})
	}
}
