package soaprm_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// notSent are the shared exchanges that neither end of hhfr says, and why; both take them in.
var notSent = map[string]string{
	"nack": "what is missing comes again by itself",
}

// kindOf says what a message is for.
func kindOf(t *testing.T, octets []byte) string {
	e, err := soap.Parse(octets, soap.Limits{MaxBytes: 1 << 20})
	require.NoError(t, err, "%s", octets)
	if len(e.Body) > 0 && e.Body[0].Name.Local == "MakeConnection" {
		return "MakeConnection"
	}
	b := header.Parse(e)
	p, err := addressing.Read(e)
	require.NoError(t, err)
	switch {
	case b != nil && b.Control != "":
		return b.Control
	case strings.HasSuffix(p.Action, "/LastMessage"):
		return "LastMessage"
	case b == nil:
		return "other"
	case b.Number > 0 && len(e.Body) > 0 && len(b.AckRequested) > 0:
		return "message that asks for an acknowledgement"
	case b.Number > 0 && len(e.Body) > 0:
		return "message"
	}
	if len(b.Acknowledgements) == 0 {
		return "other"
	}
	switch a := b.Acknowledgements[0]; {
	case len(a.Nacks) > 0:
		return "nack"
	case a.None:
		return "None"
	case len(a.Ranges) > 1:
		return "acknowledgement with a gap"
	}
	return "acknowledgement"
}

// Each message of the shared exchanges is one that an end of hhfr sends as well, in the same
// version; those that none sends are listed. That each is taken in is held by TestVectorsOfClients,
// TestVectorsOfServices and TestMakeConnection, which together name all of them.
func TestVectorsAreSent(t *testing.T) {
	received := []string{
		"01-create", "02-create-response", "03-app-1", "03-app-3", "04-ack-gap", "05-nack", "06-last-message",
		"06-close", "07-close-response", "08-terminate", "09-terminate-response", "10-makeconnection", "11-none-ack",
	}
	dir := shared.Dir(t, "specs", "vectors", "wsrm")
	files := shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".xml" })
	require.NotEmpty(t, files)
	sent := map[string]map[string]bool{}
	for prefix, p := range map[string]pairing{"wsrm10": pairings[0], "wsrm11": pairings[3]} {
		sent[prefix] = everyKind(t, p)
	}
	left := map[string]bool{}
	for _, path := range files {
		prefix, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".xml"), "-")
		assert.Contains(t, received, name, "no test takes it in")
		kind := kindOf(t, shared.Read(t, path))
		if !sent[prefix][kind] {
			t.Logf("%s is not sent: %s: %s", filepath.Base(path), kind, notSent[kind])
			left[kind] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(notSent)), slices.Sorted(maps.Keys(left)))
}

// everyKind has both ends say all that they do in a version, and returns what kinds of messages
// there were.
func everyKind(t *testing.T, p pairing) map[string]bool {
	kinds := map[string]bool{}
	note := func(e *ends) {
		require.NoError(t, e.served.Close())
		e.link.mu.Lock()
		defer e.link.mu.Unlock()
		e.back.mu.Lock()
		defer e.back.mu.Unlock()
		for _, octets := range slices.Concat(e.link.seen, e.link.answers, e.back.seen) {
			if len(octets) > 0 {
				kinds[kindOf(t, octets)] = true
			}
		}
	}
	for _, w := range append([]way{{"", func(e *ends, p pairing) *soaprm.SequenceSource {
		return e.source(p.version, p.space, p.soap)
	}}}, ways...) {
		if w.name == "poll" && p.version == soaprm.V10 {
			continue
		}
		e := newEnds(t, 3, 0.3)
		s := w.open(e, p)
		for n := range 8 {
			_, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, n), Action: "urn:add"})
			require.NoError(t, err)
		}
		require.NoError(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
		note(e)
	}
	k := &talk{ends: newEnds(t, 1, 0), pairing: p}
	k.create()
	for _, n := range []uint64{2, 1} { // 2 behind a gap
		status, answer, _ := k.post(k.message(n))
		if answer != nil {
			octets, err := soap.Build(answer)
			require.NoError(t, err, status)
			kinds[kindOf(t, octets)] = true
		}
	}
	gap := &talk{ends: newEnds(t, 1, 0), pairing: p}
	s := ways[0].open(gap.ends, p)
	gap.id = s.Status().Replies
	for _, n := range []uint64{1, 3} { // replies 1 and 3, and not 2
		r := httptest.NewRequest(http.MethodPost, gap.callbackOf(), bytes.NewReader(gap.message(n)))
		r.Header.Set("Content-Type", "text/xml")
		w := httptest.NewRecorder()
		gap.back.handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusAccepted, w.Code, "%s", w.Body)
	}
	acknowledged := func() bool {
		gap.link.mu.Lock()
		defer gap.link.mu.Unlock()
		return kindOf(t, gap.link.seen[len(gap.link.seen)-1]) == "acknowledgement with a gap"
	}
	require.Eventually(t, acknowledged, deadline, tick)
	require.NoError(t, s.Close())
	note(gap.ends)
	return kinds
}

const polled = "http://docs.oasis-open.org/ws-rx/wsmc/200702/anonymous?id=33333333-3333-4333-8333-333333333333"

// Who polls gets the answer to a request on its connection, as any such connection will do
// (WS-MakeConnection 1.1, section 3.1), and not once more when it polls; what got lost, or came too
// late for its connection, it gets one message each time, and is told whether more wait, until it
// is acknowledged. A message that selects nothing, or by anything else than an address, is a fault.
func TestMakeConnection(t *testing.T) {
	k := &talk{ends: newEnds(t, 1, 0), pairing: pairings[3]}
	now := newMovedClock()
	k.clock = now
	k.cfg.Patience = time.Millisecond
	k.restart()
	asks := shared.Read(t, filepath.Join(shared.Dir(t, "specs", "vectors", "wsrm"), "wsrm11-10-makeconnection.xml"))
	poll := func() (*soap.Envelope, *header.Blocks, string) {
		status, answer, b := k.post(asks)
		if answer == nil {
			assert.Equal(t, 202, status)
			return nil, b, ""
		}
		assert.Equal(t, 200, status)
		more := ""
		for _, h := range answer.Header {
			if h.Name.Local == "MessagePending" {
				more = h.Attr("pending")
			}
		}
		return answer, b, more
	}
	// has asserts that an answer is the reply with a number, and acknowledges up to another.
	has := func(number, acknowledged uint64, b *header.Blocks) {
		t.Helper()
		assert.Equal(t, []any{offered, number}, []any{b.Sequence, b.Number})
		assert.Equal(t, [][2]uint64{{1, acknowledged}}, b.Acknowledgements[0].Ranges)
	}
	none := func() {
		t.Helper()
		answer, _, _ := poll()
		assert.Nil(t, answer)
	}
	none()
	status, _, b := k.post(k.to(polled, k.make(k.version.Namespace()+"/CreateSequence", "", header.Blocks{
		Control: "CreateSequence", Terms: &header.Terms{AcksTo: polled,
			Offer: &header.OfferedSequence{Sequence: offered, Endpoint: polled}}})))
	require.Equal(t, 200, status)
	require.Equal(t, "CreateSequenceResponse", b.Control)
	k.id = b.Sequence
	none()
	first := k.messageFor(polled, 1)
	status, answer, b := k.post(first)
	assert.Equal(t, 200, status)
	has(1, 1, b)
	p, err := addressing.Read(answer)
	require.NoError(t, err)
	assert.Equal(t, polled, p.To)
	none()
	_, _, b = k.post(first) // its answer got lost
	has(1, 1, b)
	none()
	now.to(5 * time.Second) // nothing acknowledged it
	_, b, more := poll()
	has(1, 1, b)
	assert.Equal(t, "false", more)

	for n := uint64(4); n > 2; n-- { // behind a gap: acknowledged is what is done
		status, answer, b = k.post(k.messageFor(polled, n))
		assert.Equal(t, 202, status)
		assert.Empty(t, answer.Body)
		assert.Equal(t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
	}
	_, _, b = k.post(k.messageFor(polled, 2))
	has(2, 4, b)
	_, b, more = poll()
	has(3, 4, b)
	assert.Equal(t, "true", more)
	_, b, more = poll()
	has(4, 4, b)
	assert.Equal(t, "false", more)
	none()
	k.restart() // it is all in the store
	for n := range uint64(4) {
		_, b, _ = poll()
		has(n+1, 4, b)
	}
	acks := []header.Acknowledgement{{Sequence: offered, Ranges: [][2]uint64{{1, 4}}}}
	k.post(k.make("urn:x", "", header.Blocks{Acknowledgements: acks}))
	now.to(time.Minute)
	for answer, b, _ := poll(); answer != nil; answer, b, _ = poll() {
		assert.Zero(t, b.Number)
	}
	assert.Equal(t, []string{"1", "2", "3", "4"}, k.entries())

	end := k.to(polled, k.about("TerminateSequence", 4))
	status, _, b = k.post(end)
	assert.Equal(t, []any{200, "TerminateSequenceResponse"}, []any{status, b.Control})
	k.fault(k.messageFor(polled, 5), "SequenceTerminated")
	none()

	address := []byte("<wsmc:Address>" + polled + "</wsmc:Address>")
	for subcode, body := range map[string]string{
		"MissingSelection": "", "UnsupportedSelection": `<wsrm:Identifier>urn:uuid:1</wsrm:Identifier>`,
	} {
		_, answer, _ := k.post(bytes.Replace(asks, address, []byte(body), 1))
		require.NotNil(t, answer)
		f, ok := answer.Fault()
		require.True(t, ok)
		assert.Equal(t, []any{soap.Server, subcode, "http://docs.oasis-open.org/ws-rx/wsmc/200702"},
			[]any{f.Code, f.Subcode, f.SubcodeSpace})
		p, err := addressing.Read(answer)
		require.NoError(t, err)
		assert.Equal(t, "http://docs.oasis-open.org/ws-rx/wsmc/200702/fault", p.Action)
	}
}
