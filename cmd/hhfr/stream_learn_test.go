package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/negotiate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/internal/shared"
)

// referenceOctets is the maximum size of a shape frame that names a shape by its fingerprint: 32
// bytes, the number, and the frame around.
const referenceOctets = 40

// TestSecondSessionAnnouncesNoShapes: the offer names the shapes of the FILEs, the answer those
// that the server has; only the others travel in full, in either direction. Where what is first
// travels as text, no run takes more.
func TestSecondSessionAnnouncesNoShapes(t *testing.T) {
	dir := t.TempDir()
	url, stop := serveHere(t, "--store", filepath.Join(dir, "server"))
	defer stop()
	soap := shared.Testdata(t, "soap")
	first := []string{filepath.Join(soap, "cwmp-inform.xml"), filepath.Join(soap, "ews-finditem-request.xml")}
	fresh := filepath.Join(dir, "new.xml")
	require.NoError(t, os.WriteFile(fresh,
		[]byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><never:seen `+
			`xmlns:never="urn:n"><before>1</before></never:seen></s:Body></s:Envelope>`), 0o600))
	var took []int64 // by the runs, in both directions
	at, without := url, "plain"
	run := func(files ...string) network.Octets {
		t.Helper()
		// Each run has a store of its own: it knows shapes only from its FILEs.
		code, stdout, stderr := do(t, append([]string{"stream", at, "--require-hhfr", "--mode", "explicit", "--without",
			without, "--repeat", "3", "--concurrency", "1", "-H", "X-Trace: 1", "-o", "json"}, files...)...)
		require.Zero(t, code, stderr)
		s := lastSummary(t, stdout)
		took = append(took, s.Stream.Sent+s.Stream.Received)
		return s.Shapes
	}
	full := run(first...)
	assert.Greater(t, full.Sent, int64(10*referenceOctets), "the first time in full")
	again := run(first...)
	named := int64(len(first) + 1) // bodies, and the head with its own field
	assert.LessOrEqual(t, again.Sent, named*referenceOctets)
	assert.LessOrEqual(t, again.Received, named*referenceOctets)
	more := run(append(first, fresh)...)
	assert.Greater(t, more.Sent, again.Sent+referenceOctets, "the one that the server lacks goes in full")
	assert.Less(t, more.Sent, full.Sent)
	assert.LessOrEqual(t, run(append(first, fresh)...).Sent, (named+1)*referenceOctets)

	large := filepath.Join(soap, "onvif-getcapabilities-response.xml")
	code, stdout, stderr := do(t, "stream", url, large, "--store", filepath.Join(dir, "client"), "-q")
	require.Zero(t, code, stdout, stderr)
	var r negotiate.NegotiateReport
	code, stdout, stderr = do(t, "negotiate", url, "--store", filepath.Join(dir, "client"), "-o", "json")
	require.Zero(t, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	assert.Positive(t, r.Offered.Shapes)
	assert.Equal(t, r.Offered.Shapes, r.Agreed.Shapes)

	other, stop := serveHere(t, "--store", filepath.Join(dir, "other"))
	defer stop()
	announcing := took
	at, without, took = other, "", nil
	assert.Less(t, run(first...).Sent, full.Sent)
	assert.LessOrEqual(t, run(first...).Sent, named*referenceOctets)
	assert.Less(t, run(append(first, fresh)...).Sent, full.Sent)
	assert.LessOrEqual(t, run(append(first, fresh)...).Sent, (named+1)*referenceOctets)
	for i := range took {
		assert.LessOrEqual(t, took[i], announcing[i]+4, "run %d", i) // times may take a byte
	}
}
