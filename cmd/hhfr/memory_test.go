//go:build linux && !race

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// packed is a stream of messages of 4 MB each, which take some hundred bytes on the wire.
func packed(t *testing.T, messages int) (file string, message []byte) {
	t.Helper()
	const row = `<r a="1"><x>the same the same the same the same the same the same</x><y>2</y></r>` + "\n"
	message = []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><op xmlns="urn:h">` +
		strings.Repeat(row, 4_000_000/len(row)) + `</op></s:Body></s:Envelope>`)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big.xml"), message, 0o600))
	file = filepath.Join(dir, "packed.hhfr")
	code, _, stderr := do(t, append([]string{"transcode", "--out", file, "-q"},
		slices.Repeat([]string{filepath.Join(dir, "big.xml")}, messages)...)...)
	require.Equal(t, exit.Done, code, stderr)
	require.Less(t, len(shared.Read(t, file)), 2000*messages)
	return file, message
}

// requireFrugal runs hhfr, which must take no more than 48 MB beside a message and its own file. On
// a busy machine the collector comes late, so the least of three runs counts.
func requireFrugal(t *testing.T, message int, in []byte, args ...string) {
	t.Helper()
	limit, least := int64(48<<20+message), int64(math.MaxInt64)
	for run := 0; run < 3 && least >= limit; run++ {
		c := exec.CommandContext(t.Context(), "measured", args...)
		var errs bytes.Buffer
		c.Stdin, c.Stderr = bytes.NewReader(in), &errs
		require.NoError(t, c.Run(), "%s", &errs)
		var most, file int64
		_, err := fmt.Sscanf(errs.String()[strings.LastIndex(errs.String(), "VmHWM:"):], "VmHWM: %d kB\nRssFile: %d kB",
			&most, &file)
		require.NoError(t, err)
		least = min(least, (most-file)<<10)
	}
	t.Logf("%s: %d MB", strings.Join(args[:min(len(args), 9)], " "), least>>20)
	assert.Less(t, least, limit, "%v", args)
}

// bounded reads a stream of long messages with every command.
func bounded(t *testing.T, messages int) {
	file, message := packed(t, messages)
	octets := shared.Read(t, file)
	dir := t.TempDir()
	requireFrugal(t, len(message), nil, "reconstruct", file, "-q")
	requireFrugal(t, len(message), nil, "reconstruct", file, "-q", "--save-dir", dir)
	requireFrugal(t, len(message), nil, "reconstruct", file, "-q", "-o", "jsonl")
	requireFrugal(t, len(message), octets, "reconstruct", "-", "-q", "-o", "xml")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, messages)
	for _, f := range files {
		require.True(t, bytes.Equal(message, shared.Read(t, filepath.Join(dir, f.Name()))), f.Name())
	}
}

// However long the messages of a stream are in sum, reading it takes little memory beside its
// longest message.
func TestMemoryIsBounded(t *testing.T) { bounded(t, 20) }

// Files are packed as they are read, so that neither their number nor their length counts.
func TestPackingHoldsLittle(t *testing.T) {
	const length = 32 << 20
	var rows strings.Builder
	rnd := rand.New(rand.NewPCG(1, 2))
	for rows.Len() < length>>5 {
		fmt.Fprintf(&rows, "<r a=\"%d\"><x>name %d</x><y>%.3f</y></r>\n", rnd.IntN(1e6), rnd.IntN(1e3), rnd.Float64())
	}
	file := filepath.Join(t.TempDir(), "long.xml")
	message := []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><op xmlns="urn:h">` +
		strings.Repeat(rows.String(), 32) + `</op></s:Body></s:Envelope>`)
	require.NoError(t, os.WriteFile(file, message, 0o600))
	stream := filepath.Join(t.TempDir(), "long.hhfr")
	requireFrugal(t, 32<<20, nil, "transcode", "-q", "--out", stream, file, file, file)
	code, _, stderr := do(t, "reconstruct", stream, "-q", "--save-dir", t.TempDir())
	require.Equal(t, exit.Done, code, stderr)
}

// mostMemory is the most memory that a process took so far, in kB.
func mostMemory(t *testing.T, p *proxyProcess) (kib int64) {
	t.Helper()
	status := string(shared.Read(t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)))
	_, rest, _ := strings.Cut(status, "VmHWM:")
	_, err := fmt.Sscanf(rest, "%d kB", &kib)
	require.NoError(t, err)
	return kib
}

// Both halves of a pair carry bodies longer than what they hold, framed either way, in little
// memory.
func TestPairHoldsLittle(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		fmt.Fprintf(w, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><n>%d</n></s:Body>`+
			`</s:Envelope>`, n)
	}))
	defer origin.Close()
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/"), "-v")
	send := func(body io.Reader) {
		r, err := http.Post(near.url("/"), "text/xml; charset=utf-8", body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.NoError(t, r.Body.Close())
	}
	send(strings.NewReader(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>`))
	near.linked(1)
	unused := [...]int64{mostMemory(t, near), mostMemory(t, far)}
	random := make([]byte, 30_000_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	body := []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><data>` +
		base64.StdEncoding.EncodeToString(random) + `</data></s:Body></s:Envelope>`)
	for range 4 {
		send(bytes.NewReader(body))
		send(io.MultiReader(bytes.NewReader(body))) // in chunks
	}
	for i, p := range []*proxyProcess{near, far} {
		t.Logf("%d kB, %d kB after long bodies", unused[i], mostMemory(t, p))
		assert.Less(t, mostMemory(t, p)-unused[i], int64(48<<10))
	}
	near.end()
	far.end()
}
