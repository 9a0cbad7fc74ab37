package capture_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// recordedPosts is a capture of requests with these envelopes, each answered with 202.
func recordedPosts(t testing.TB, envelopes ...[]byte) []byte {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	transport := &http.Transport{DialContext: rec.DialContext((&net.Dialer{}).DialContext)}
	client := &http.Client{Transport: transport}
	for _, e := range envelopes {
		postOne(t, client, server.URL, e)
	}
	transport.CloseIdleConnections()
	require.NoError(t, rec.Close())
	return file.Bytes()
}

func postOne(t testing.TB, client *http.Client, url string, envelope []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(envelope))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "text/xml; charset=utf-8")
	response, err := client.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}

// inSequence is a message with a number, in a sequence of 1.1.
func inSequence(id string, number uint64, more string) []byte {
	return []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:r="` +
		soaprm.V11.Namespace() + `"><s:Header><r:Sequence s:mustUnderstand="1"><r:Identifier>` + id +
		`</r:Identifier><r:MessageNumber>` + fmt.Sprint(number) + `</r:MessageNumber></r:Sequence></s:Header>` +
		`<s:Body><x>` + more + `</x></s:Body></s:Envelope>`)
}

func sequencesOf(t testing.TB, file []byte) map[string]capture.SequenceSeen {
	t.Helper()
	list, dropped := decode(t, file, nil).Sequences()
	require.Zero(t, dropped)
	byID := map[string]capture.SequenceSeen{}
	for _, s := range list {
		byID[s.Identifier] = s
	}
	return byID
}

// A link that loses replies, and requests: what the source says that it sent again is what the
// capture shows, and every number of a sequence that ended was seen and acknowledged.
func TestResendsOfALossyLink(t *testing.T) {
	var requests atomic.Int64
	endpoint, err := soaprm.NewDestination(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		octets, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(octets)
	}), soaprm.DestinationConfig{Store: memory.New(memory.Config{})})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		octets, err := io.ReadAll(r.Body) // it is on the wire, whether or not it is lost then
		if n := requests.Add(1); err != nil || n > 1 && n%3 == 0 {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(octets))
		endpoint.ServeHTTP(w, r)
	}))
	defer server.Close()
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	transport := &http.Transport{DialContext: rec.DialContext((&net.Dialer{}).DialContext)}
	source, err := soaprm.OpenSource(t.Context(), soaprm.SourceConfig{
		URL: server.URL, Version: soaprm.V11, SOAP: soap.V11, Store: memory.New(memory.Config{}),
		Client: &http.Client{Transport: transport}, Clock: clock.Scaled(200), Resend: 2 * time.Second,
		GiveUp: 24 * time.Hour,
	})
	require.NoError(t, err)
	const messages = 20
	for n := range messages {
		_, err := source.Send(t.Context(), soaprm.OutgoingEnvelope{
			Envelope: []byte(`<s:Envelope xmlns:s="` + soap.V11.Namespace() + `"><s:Body><n>` + fmt.Sprint(n) +
				`</n></s:Body></s:Envelope>`),
		})
		require.NoError(t, err)
	}
	require.NoError(t, source.Finish(t.Context()))
	status := source.Status()
	require.NoError(t, source.Close())
	transport.CloseIdleConnections()
	require.NoError(t, rec.Close())

	result := decode(t, file.Bytes(), nil)
	again := 0
	first := map[uint64]*capture.Decoded{}
	for _, m := range result.Messages {
		if m.Reply || m.Reliable == nil || m.Reliable.Number == 0 {
			continue
		}
		before := first[m.Reliable.Number]
		if before == nil {
			first[m.Reliable.Number] = m
			assert.Nil(t, m.Earlier)
			continue
		}
		again++
		require.NotNil(t, m.Earlier)
		assert.Equal(t, capture.EarlierSending{Number: before.Number, Packet: before.Packet}, *m.Earlier)
	}
	assert.Positive(t, status.Resent)
	assert.EqualValues(t, status.Resent, again)
	seen := sequencesOf(t, file.Bytes())
	require.Len(t, seen, 2)
	there, back := seen[status.Identifier], seen[status.Replies]
	assert.EqualValues(t, status.Resent, there.Resent)
	assert.Equal(t, [2]uint64{messages, messages}, [2]uint64{there.Messages, there.AcknowledgedTo})
	assert.Equal(t, [2]uint64{messages, messages}, [2]uint64{back.Messages, back.AcknowledgedTo})
	assert.True(t, there.Created && there.Closed && there.Terminated && back.Created)
	assert.Zero(t, there.Missing+back.Missing)
}

// The exchanges of the shared vectors, as messages of a capture.
func TestSequencesOfTheVectors(t *testing.T) {
	dir := shared.Dir(t, "specs", "vectors", "wsrm")
	for _, version := range []string{"wsrm10", "wsrm11"} {
		t.Run(version, func(t *testing.T) {
			var envelopes [][]byte
			for _, name := range shared.Files(t, dir, func(p string) bool {
				return strings.HasPrefix(filepath.Base(p), version)
			}) {
				envelopes = append(envelopes, shared.Read(t, name))
			}
			require.Greater(t, len(envelopes), 5)
			seen := sequencesOf(t, recordedPosts(t, envelopes...))
			var there *capture.SequenceSeen
			for _, s := range seen {
				if s.Messages > 0 {
					require.Nil(t, there)
					there = &s
				}
			}
			require.NotNil(t, there)
			assert.Positive(t, there.Missing, "the vectors leave message 2 out: %+v", there)
			assert.Equal(t, uint64(2), there.Gaps[0][0])
			assert.Equal(t, 1, there.Nacks)
			assert.True(t, there.Created && there.Terminated)
			assert.Equal(t, version == "wsrm11", there.Closed)
		})
	}
}

// A message that was sent again by Apache CXF, of the corpus, is one of a sequence.
func TestSequencesOfTheCorpus(t *testing.T) {
	octets := shared.Read(t, filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "cxf"), "Retransmission.xml"))
	seen := sequencesOf(t, recordedPosts(t, octets, octets))
	resent := 0
	for _, s := range seen {
		resent += s.Resent
	}
	assert.Equal(t, 1, resent, "%+v", seen)
}

// What precedes an envelope, and how long its body is, makes no difference.
func TestSequencesOfLongAndOfSeveralParts(t *testing.T) {
	mime := []byte("--b\r\nContent-Type: application/xop+xml; type=\"text/xml\"\r\n\r\n")
	seen := sequencesOf(t, recordedPosts(t, inSequence("urn:s", 1, strings.Repeat("long ", 1<<19)),
		append(mime, inSequence("urn:s", 2, "parts\r\n--b--")...)))
	assert.EqualValues(t, 2, seen["urn:s"].Messages)
}

// Faults are counted for the sequence that they name, in either version of SOAP.
func TestFaultsAboutSequences(t *testing.T) {
	space := soaprm.V11.Namespace()
	blocks := `<r:SequenceFault xmlns:r="` + space + `"><r:FaultCode>r:UnknownSequence</r:FaultCode><r:Detail>` +
		`<r:Identifier> urn:a </r:Identifier></r:Detail></r:SequenceFault>`
	old := `<s:Envelope xmlns:s="` + soap.V11.Namespace() + `"><s:Header>` + blocks + `</s:Header><s:Body><s:Fault>` +
		`<faultcode>s:Client</faultcode><faultstring>no</faultstring></s:Fault></s:Body></s:Envelope>`
	later, err := soap.BuildFault(soap.V12, soap.Fault{Code: soap.Client, Reason: "no", Subcode: "SequenceTerminated",
		SubcodeSpace: space, Detail: []soap.Element{
			{Name: soap.Name{Space: space, Local: "Identifier"}, Text: "urn:a"},
		}})
	require.NoError(t, err)
	refused, err := soap.BuildFault(soap.V12, soap.Fault{Code: soap.Client, Reason: "no",
		Subcode: "CreateSequenceRefused", SubcodeSpace: space})
	require.NoError(t, err)
	seen := sequencesOf(t, recordedPosts(t, []byte(old), later, []byte(old), refused))
	assert.Equal(t, map[string]int{"UnknownSequence": 2, "SequenceTerminated": 1}, seen["urn:a"].Faults)
	assert.Equal(t, map[string]int{"CreateSequenceRefused": 1}, seen[""].Faults)
}

// Many sequences with many gaps, mentioned in any order, take bounded memory; those that were
// mentioned last stay, and how many are not listed is known.
func TestSequencesAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var memory [2]uint64
	for i, n := range []int{1_100, 2_500} {
		var envelopes [][]byte
		for k := range n {
			envelopes = append(envelopes, inSequence(fmt.Sprintf("urn:%s:%d", strings.Repeat("s", 1100), k%2),
				random.Uint64N(1<<62)+1, ""), inSequence(fmt.Sprintf("urn:%d", k), 1+uint64(k), ""))
		}
		file := onePerPacket(t, envelopes)
		before := heap()
		r := capture.NewReader(context.Background(), capture.DecodeConfig{})
		for _, err := range r.Captures(context.Background(), capture.Input{Octets: bytes.NewReader(file)}) {
			require.NoError(t, err)
		}
		memory[i] = heap() - min(before, heap())
		list, dropped := r.Summary().Sequences()
		assert.Len(t, list, 1024)
		assert.Equal(t, n+1-1024, dropped) // two identifiers of which the first KiB is the same are one
		runtime.KeepAlive(r)
	}
	assert.Less(t, memory[1], memory[0]+8<<20, "%v", memory)
}

// onePerPacket is a capture of requests with these envelopes, each in a packet of its own, and
// answered with 202.
func onePerPacket(t testing.TB, envelopes [][]byte) []byte {
	p := newPackets(t)
	c := p.connect(1234)
	for _, e := range envelopes {
		c.segment(0, flagACK, fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(e), e))
		c.segment(1, flagACK, []byte("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"))
	}
	c.end()
	return p.bytes()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
