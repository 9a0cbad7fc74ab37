package binary_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/codec/binary"
)

// TestRecordsOfTheCorpusAreColumns: the longest arrays of the corpus take less than their bit-packed EXI, without any memory between messages, and less than their compressed one with zstd behind it.
func TestRecordsOfTheCorpusAreColumns(t *testing.T) {
	dir := shared.Dir(t, "corpus", "messages", "soap11", "jtlm")
	for _, c := range []struct {
		name    string
		without uint64
		most    int
	}{
		{"publish100.xml", binary.Memory | binary.Zstd, 9511},
		{"publish911.xml", binary.Memory | binary.Zstd, 86000},
		{"publish100.xml", binary.Memory, 2047},
		{"publish911.xml", binary.Memory, 15000},
	} {
		k := newPacking(t, binary.Options{Without: c.without})
		message := shared.Read(t, filepath.Join(dir, c.name))
		octets, plain := k.whole(t, 1, message)
		assert.LessOrEqual(t, octets, c.most, c.name)
		t.Logf("%s without %d: %d octets, content %d, packed %d", c.name, c.without, len(message), plain, octets)
	}
}
