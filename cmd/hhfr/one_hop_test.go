package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
)

// One guarantee is at work on a hop: no message has both a place that its stream gives it and a
// number in a sequence of WS-ReliableMessaging. Toward an origin a far proxy adds a sequence to
// what has none, and passes on what has its own.
func TestOneGuaranteeOnAHop(t *testing.T) {
	dir := t.TempDir()
	services, stop := servicesHere(t, "--soap-rm", "all", "--store", "bolt:"+filepath.Join(dir, "server.db"))
	defer stop()
	add := filepath.Join(dir, "add.xml")
	require.NoError(t, os.WriteFile(add, []byte(entryMessage(1)), 0o600))
	record := func(name string) string { return filepath.Join(dir, name+".pcapng") }
	far := startProxyProcess(t, "127.0.0.1:0", services["ledger"].URL, "--soap-rm", "1.1", "--record", record("far"))
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/ledger"), "--record", record("near"), "-v")
	near.linked(1)
	for name, args := range map[string][]string{
		"plain": {near.url("/ledger"), "--mode", "explicit"}, "own": {near.url("/ledger"), "--soap-rm", "1.0"},
		"guaranteed": {services["ledger"].URL, "--assurance", "exactly-once", "--store",
			"bolt:" + filepath.Join(dir, "client.db")},
	} {
		args = append([]string{"stream", args[0], add, add, "--record", record(name)}, args[1:]...)
		code, stdout, stderr := do(t, args...)
		require.Zero(t, code, "%s: %s%s", name, stdout, stderr)
	}
	near.end()
	far.end()

	places, numbers := map[string]int{}, map[string]int{}
	for _, name := range []string{"plain", "own", "guaranteed", "near", "far"} {
		code, stdout, stderr := do(t, "decode", record(name), "-q", "-o", "json", "--lenient")
		require.Zero(t, code, "%s: %s", name, stderr)
		var got listing.DecodeReport
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		for _, m := range got.Messages {
			if m.Place != nil {
				places[name]++
			}
			if m.Reliable != nil && m.Reliable.Number > 0 {
				numbers[name]++
				assert.Nil(t, m.Place, "%s: %s", name, m.Body)
				assert.NotContains(t, m.Reliable.Broken, "wsrm: Sequence: a second one")
			}
		}
	}
	assert.Equal(t, map[string]int{"guaranteed": 4}, places)
	assert.Equal(t, 0, numbers["plain"]+numbers["guaranteed"])
	assert.Equal(t, 5, numbers["own"], "a request and its reply, twice, and the last message")
	assert.Equal(t, 5, numbers["near"], "those of its client")
	assert.Equal(t, 14, numbers["far"], fmt.Sprint("those of the client on both hops, and the proxy's own: ", numbers))
}
