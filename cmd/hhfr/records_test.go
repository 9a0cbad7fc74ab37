package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestRecordFields: docs/bench.md has each field of the records that bench --save writes, with what
// the types of internal/experiment say of it.
func TestRecordFields(t *testing.T) {
	var want strings.Builder
	want.WriteString("| field | |\n|---|---|\n")
	f := fieldTable{t: t, seen: map[reflect.Type]string{}, to: &want}
	f.of(reflect.TypeFor[experiment.Measured](), "")

	const from, to = "<!-- made: records -->\n", "<!-- end -->"
	path := shared.Testdata(t, "..", "docs", "bench.md")
	page := string(shared.Read(t, path))
	before, behind, found := strings.Cut(page, from)
	have, after, ended := strings.Cut(behind, to)
	require.True(t, found && ended, "docs/bench.md has no mark of records")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+from+want.String()+to+after), 0o644))
		return
	}
	assert.Equal(t, want.String(), have, "stale: go test ./cmd/hhfr -run TestRecordFields -update")
}
