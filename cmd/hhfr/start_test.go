package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each command pays for what packages allocate before main: expressions that most never match, for
// one. Those of this package are of its tests.
func TestStartsWithLittle(t *testing.T) {
	c := exec.CommandContext(t.Context(), "hhfr", "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(t, c.Run())
	packages, sum := 0, 0
	for line := range strings.Lines(errs.String()) {
		fields := strings.Fields(line) // such as init NAME @2.1 ms, 0.1 ms clock, 256 bytes, 2 allocs
		if len(fields) != 11 || !strings.HasPrefix(fields[1], "github.com/hhfr/hhfr/") ||
			fields[1] == "github.com/hhfr/hhfr/cmd/hhfr" {
			continue
		}
		size, err := strconv.Atoi(fields[7])
		require.NoError(t, err)
		packages++
		sum += size
		assert.LessOrEqual(t, size, 32<<10, "bytes of package %s", fields[1])
	}
	assert.Greater(t, packages, 10, "the test shows nothing: %s", &errs)
	assert.LessOrEqual(t, sum, 256<<10, "bytes of all packages")
}
