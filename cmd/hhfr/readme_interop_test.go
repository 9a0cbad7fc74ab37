//go:build interop

package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestInteropReadme: the lines of the README's section Use work as pasted into one shell, in their
// order. Only ports are replaced.
func TestInteropReadme(t *testing.T) {
	for _, program := range []string{"bash", "curl", "python3"} {
		shared.Program(t, program)
	}
	_, use, found := strings.Cut(string(shared.Read(t, shared.Testdata(t, "..", "README.md"))), "\n## Use\n")
	require.True(t, found)
	use, _, found = strings.Cut(use, "\n## ")
	require.True(t, found)
	script := "set -e\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" // a failure leaves no server behind
	blocks := shellBlock.FindAllStringSubmatch(use, -1)
	require.GreaterOrEqual(t, len(blocks), 8)
	for _, b := range blocks {
		script += b[1]
	}
	ports := map[string]string{}
	script = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(script, func(address string) string {
		if ports[address] == "" {
			ports[address] = shared.Addr(t)
		}
		return ports[address]
	})
	require.NotEmpty(t, ports["127.0.0.1:8080"])
	script = strings.ReplaceAll(script, "hhfr serve ", "hhfr serve --listen "+ports["127.0.0.1:8080"]+" ")
	script = strings.ReplaceAll(script, "--timeout 3s", "--timeout 10s")
	script = patient(t, script)
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = shared.Testdata(t, "..")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", script, out)
	assert.NotContains(t, string(out), "hhfr: error", "%s", out)
	assert.NotContains(t, string(out), "Traceback", "%s", out)
	assert.Contains(t, string(out), " verified\n")
	assert.Contains(t, string(out), "<result>1.25</result>")
	assert.Contains(t, string(out), " <-  tick ")
}

// patient makes a script wait until servers listen, where people wait for a second.
func patient(t *testing.T, script string) string {
	started := regexp.MustCompile(`--listen (127\.0\.0\.1):(\d+).*&$`)
	var wait string
	lines, waits := strings.Split(script, "\n"), 0
	for i, line := range lines {
		if m := started.FindStringSubmatch(line); m != nil {
			wait += fmt.Sprintf("until (exec 3<> /dev/tcp/%s/%s) 2> /dev/null; do sleep 0.1; done\n", m[1], m[2])
		}
		if line == "sleep 1" {
			lines[i], wait = wait, ""
			waits++
		}
	}
	require.Equal(t, strings.Count(script, " &\n"), strings.Count(strings.Join(lines, "\n"), "/dev/tcp/"),
		"each server is waited for")
	require.Positive(t, waits)
	return strings.Join(lines, "\n")
}
