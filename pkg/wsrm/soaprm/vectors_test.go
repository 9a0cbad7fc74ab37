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

// Who polls gets one message each time, is told whether more wait, and gets none when none waits;
// what got lost is there again after a while, until it is acknowledged. A message that selects
// nothing, or by anything else than an address, is a fault.
func TestMakeConnection(t *testing.T) {
	k := &talk{ends: newEnds(t, 1, 0), pairing: pairings[3]}
	now := newMovedClock()
	k.clock = now
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
	answer, _, _ := poll()
	require.Nil(t, answer)
	status, answer, _ := k.post(k.to(polled, k.make(k.version.Namespace()+"/CreateSequence", "", header.Blocks{
		Control: "CreateSequence", Terms: &header.Terms{AcksTo: polled,
			Offer: &header.OfferedSequence{Sequence: offered, Endpoint: polled}}})))
	require.Equal(t, 202, status)
	require.Nil(t, answer)
	_, b, more := poll()
	require.Equal(t, "CreateSequenceResponse", b.Control)
	assert.Equal(t, "false", more)
	k.id = b.Sequence
	for n := range uint64(2) {
		status, answer, _ = k.post(k.messageFor(polled, n+1))
		assert.Equal(t, 202, status)
		assert.Nil(t, answer)
	}
	_, b, more = poll()
	assert.Equal(t, []any{offered, uint64(1), "true"}, []any{b.Sequence, b.Number, more})
	assert.Equal(t, [][2]uint64{{1, 2}}, b.Acknowledgements[0].Ranges)
	_, b, more = poll()
	assert.Equal(t, []any{offered, uint64(2), "false"}, []any{b.Sequence, b.Number, more})
	answer, _, _ = poll()
	assert.Nil(t, answer)
	now.to(3 * time.Second)
	_, b, _ = poll() // nothing acknowledged it
	assert.EqualValues(t, 1, b.Number)
	k.restart() // it is all in the store
	_, b, _ = poll()
	assert.EqualValues(t, 1, b.Number)
	_, b, _ = poll()
	assert.EqualValues(t, 2, b.Number)
	acks := []header.Acknowledgement{{Sequence: offered, Ranges: [][2]uint64{{1, 2}}}}
	k.post(k.make("urn:x", "", header.Blocks{Acknowledgements: acks}))
	now.to(time.Minute)
	for answer, b, _ = poll(); answer != nil; answer, b, _ = poll() {
		assert.Zero(t, b.Number)
	}
	assert.Equal(t, []string{"1", "2"}, k.entries())

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
