//go:build interop

package main

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/soap"
)

// unlikeTshark are captures in which hhfr finds more envelopes than tshark does, and how many.
var unlikeTshark = map[string]int{
	"soap/ndpi-soap-utf16le-outoforder.pcap": 2, // its segments are out of order: tshark says "continuation"
}

// envelopesOfTshark are the envelopes in a capture, in HTTP or UDP, by tshark.
func envelopesOfTshark(t *testing.T, capture string) (count map[string]int) {
	t.Helper()
	dir, tshark := t.TempDir(), shared.Program(t, "tshark")
	count = map[string]int{}
	add := func(body []byte) {
		if soap.Recognize(body).Version != 0 {
			count[string(body)]++
		}
	}
	// Of a capture that is damaged it tells what is before, with an error.
	_, _ = exec.CommandContext(t.Context(), tshark, "-n", "-Q", "-r", capture, "--export-objects", "http,"+dir).Output()
	objects, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, object := range objects {
		add(shared.Read(t, filepath.Join(dir, object.Name())))
	}
	datagrams, _ := exec.CommandContext(t.Context(), tshark, "-n", "-r", capture, "-Y", "udp && !icmp", "-T", "fields",
		"-e", "udp.payload").Output()
	for line := range strings.Lines(string(datagrams)) {
		line = strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:]) // of a tunnel, what is in it
		payload, err := hex.DecodeString(line)
		require.NoError(t, err)
		add(payload)
	}
	return count
}

// TestInteropCorpusAsTshark: the envelopes of each capture of the corpus are those that tshark
// finds, byte for byte.
func TestInteropCorpusAsTshark(t *testing.T) {
	dir := shared.Dir(t, "corpus", "pcap")
	found := 0
	for _, path := range shared.Files(t, dir, nil) {
		want := envelopesOfTshark(t, path)
		saved := t.TempDir()
		_, _, _ = do(t, "decode", path, "--save-dir", saved, "-q") // some have no SOAP, which is an error
		names, err := filepath.Glob(filepath.Join(saved, "*.xml"))
		require.NoError(t, err)
		got := map[string]int{}
		for _, name := range names {
			got[string(shared.Read(t, name))]++
		}
		more := 0
		for envelope, n := range got {
			more += n - want[envelope]
			delete(want, envelope)
		}
		assert.Empty(t, want, path)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		assert.Equal(t, unlikeTshark[filepath.ToSlash(name)], more, path)
		found += len(names)
	}
	t.Logf("%d envelopes", found)
	assert.Greater(t, found, 30)
}
