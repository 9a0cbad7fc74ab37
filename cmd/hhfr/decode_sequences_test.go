package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// saidOfSequences is a recording of messages that say this of sequences, each answered with 202.
func saidOfSequences(t testing.TB, all ...header.Blocks) (name string) {
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
	for _, b := range all {
		b.Version = "1.1"
		head, body := b.Elements("http://www.w3.org/2005/08/addressing")
		octets, err := soap.Build(&soap.Envelope{Version: soap.V12, Header: head, Body: body})
		require.NoError(t, err)
		resp, err := client.Post(server.URL, "application/soap+xml", bytes.NewReader(octets))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	transport.CloseIdleConnections()
	require.NoError(t, rec.Close())
	name = filepath.Join(t.TempDir(), "sequences.pcapng")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o600))
	return name
}

const (
	oneSequence = "urn:uuid:1111aaaa-1111-4111-8111-111111111111"
	backwards   = "http://example.org/sequences/2222bbbb"
)

// What messages say of sequences is beside their states, and summed up behind them.
func TestSequencesAreListed(t *testing.T) {
	name := saidOfSequences(t,
		header.Blocks{Control: "CreateSequence", Terms: &header.Terms{AcksTo: "urn:a",
			Offer: &header.OfferedSequence{Sequence: backwards, Endpoint: "urn:a"}}},
		header.Blocks{Sequence: oneSequence, Number: 1},
		header.Blocks{Sequence: oneSequence, Number: 4, AckRequested: []string{oneSequence}},
		header.Blocks{Acknowledgements: []header.Acknowledgement{
			{Sequence: oneSequence, Ranges: [][2]uint64{{1, 1}, {4, 4}}}, {Sequence: backwards, None: true},
		}},
		header.Blocks{Sequence: oneSequence, Number: 4, AckRequested: []string{oneSequence}},
		header.Blocks{Acknowledgements: []header.Acknowledgement{{Sequence: oneSequence, Nacks: []uint64{2, 3}}}},
		header.Blocks{Fault: "SequenceClosed"},
		header.Blocks{Control: "CloseSequence", Sequence: oneSequence, LastNumber: 5},
	)
	code, stdout, stderr := do(t, "decode", name, "-q")
	require.Zero(t, code, stderr)
	var said []string
	for _, m := range regexp.MustCompile(` unchecked, (.*)`).FindAllStringSubmatch(stdout, -1) {
		said = append(said, regexp.MustCompile(`packet \d+`).ReplaceAllString(m[1], "packet N"))
	}
	assert.Equal(t, []string{
		"offers 2222bbbb", "message 1 of 1111aaaa", "message 4 of 1111aaaa, asks what of 1111aaaa arrived",
		"acknowledges 1 4 of 1111aaaa, acknowledges nothing of 2222bbbb",
		"message 4 of 1111aaaa again (first 3, packet N), asks what of 1111aaaa arrived", "lacks 2 3 of 1111aaaa",
		"fault SequenceClosed", "sequence 1111aaaa",
	}, said)
	_, table, _ := strings.Cut(stdout, "\n\n")
	assert.Equal(t, `SEQUENCE  RM MESSAGES RESENT  MISSING ACKED TO STATE      IDENTIFIER
2222bbbb 1.1        0      0        0        0 open       http://example.org/sequences/2222bbbb
1111aaaa 1.1        2      1        2        1 closed     urn:uuid:1111aaaa-1111-4111-8111-111111111111
         numbers missing: 2-3
         acknowledged: 1 4
         asked for again: 2 messages
         said to end with 5, seen up to 4
-        1.1        0      0        0        0 seen       -
         fault SequenceClosed: 1 time
`, table)

	code, stdout, stderr = do(t, "decode", name, "-q", "-o", "json")
	require.Zero(t, code, stderr)
	var got listing.DecodeReport
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got.Sequences, 3)
	assert.Equal(t, listing.SequenceReport{Identifier: oneSequence, Version: "1.1", Messages: 2, Highest: 4, Missing: 2,
		Gaps: [][2]uint64{{2, 3}}, Resent: 1, Hops: 1, AcknowledgedTo: 1, Acknowledged: [][2]uint64{{1, 1}, {4, 4}},
		Nacks: 2, State: "closed", Last: 5}, got.Sequences[1])
	var again []listing.EarlierReport
	for _, m := range got.Messages {
		if m.Reliable != nil && m.Reliable.Again != nil {
			again = append(again, *m.Reliable.Again)
		}
	}
	require.Len(t, again, 1)
	assert.Equal(t, 3, again[0].Number)
	assert.Positive(t, again[0].Packet)
	assert.Equal(t, backwards, got.Messages[0].Reliable.Offers)

	code, stdout, stderr = do(t, "decode", name, "-q", "-o", "jsonl")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var last listing.SequenceLine
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &last))
	assert.Equal(t, got.Sequences[1], last.Sequence)
}

// Sequences that travel in the stream of a pair are followed there, too: the same numbers on both
// hops are no messages that were sent again.
func TestSequencesThroughAPair(t *testing.T) {
	services, stop := servicesHere(t, "--soap-rm", "all")
	defer stop()
	dir := t.TempDir()
	add := filepath.Join(dir, "add.xml")
	require.NoError(t, os.WriteFile(add, []byte(entryMessage(1)), 0o600))
	ledger := services["ledger"].URL
	far := startProxyProcess(t, "127.0.0.1:0", ledger)
	link, client := filepath.Join(dir, "link.pcapng"), filepath.Join(dir, "client.pcapng")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/ledger"), "--record", link, "-v")
	near.linked(1)
	code, stdout, stderr := do(t, "stream", near.url("/ledger"), add, add, add, "--soap-rm", "1.1", "--record", client)
	require.Zero(t, code, "%s%s", stdout, stderr)
	near.end()

	code, stdout, stderr = do(t, "decode", link, "-q")
	require.Zero(t, code, stderr)
	assert.Regexp(t, `(?m) request +add .* verified, message 3 of [0-9a-f]{8}`, stdout)
	assert.Regexp(t, `(?m) reply +addResponse .* verified, message 3 of [0-9a-f]{8}, acknowledges 1-3 of`, stdout)
	for files, hops := range map[string]int{link: 1, client + " " + link: 2} {
		code, stdout, stderr = do(t, append([]string{"decode", "-q", "-o", "json"}, strings.Fields(files)...)...)
		require.Zero(t, code, stderr)
		var got listing.DecodeReport
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Len(t, got.Sequences, 2)
		for _, s := range got.Sequences {
			assert.EqualValues(t, 3, s.Messages)
			assert.EqualValues(t, 3, s.AcknowledgedTo)
			assert.Zero(t, s.Resent)
			assert.Equal(t, hops, s.Hops)
		}
	}
}
