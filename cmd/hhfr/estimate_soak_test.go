//go:build soak && linux && !race

package main

import (
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/workload"
)

// A long capture (HHFR_CAPTURE_MB: in MB) misses nothing, and takes as much memory as the windows
// and pairs of its clients, to estimate and to decode.
func TestSoakLongCaptures(t *testing.T) {
	mb := 1000
	if s := os.Getenv("HHFR_CAPTURE_MB"); s != "" {
		var err error
		mb, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	var kinds []func(int) (iter.Seq2[[]byte, []byte], bool)
	for _, c := range workload.Conversations() {
		kinds = append(kinds, func(client int) (iter.Seq2[[]byte, []byte], bool) {
			return c.Calls(uint64(client)), c.Closed
		})
	}
	file := filepath.Join(t.TempDir(), "long.pcapng")
	longCapture(t, file, int64(mb)*1e6, talkers(t, 40, kinds...))
	requireFrugal(t, 128<<20, nil, "estimate", file, "-q", "--link", "gprs", "-o", "json")
	requireFrugal(t, 128<<20, nil, "decode", file, "-q", "-o", "jsonl")
}
