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
	script, ports := pasted(t, use)
	require.NotEmpty(t, ports["127.0.0.1:8080"])
	script = strings.ReplaceAll(script, "hhfr serve ", "hhfr serve --listen "+ports["127.0.0.1:8080"]+" ")
	script = strings.ReplaceAll(script, "--timeout 3s", "--timeout 10s")
	out := paste(t, script)
	assert.Contains(t, out, " verified\n")
	assert.Contains(t, out, "<result>1.25</result>")
	assert.Contains(t, out, " <-  tick ")
}

// TestInteropOperate: the page for operators can be followed, in the same way.
func TestInteropOperate(t *testing.T) {
	for _, program := range []string{"bash", "curl", "openssl"} {
		shared.Program(t, program)
	}
	script, _ := pasted(t, string(shared.Read(t, shared.Testdata(t, "..", "docs", "operate.md"))))
	out := paste(t, script)
	assert.NotContains(t, out, "msg=", "a half has something to report")
	assert.Regexp(t, `(?m)^ +\d+ .* [0-9a-f]{8} +1\.\d+ request +Inform .* verified$`, out, "calls on a stream")
	assert.Regexp(t, `(?m)^1$`, out, "sessions over TLS")
}

// pasted is the commands of a page as a script. Only ports are replaced.
func pasted(t *testing.T, page string) (script string, ports map[string]string) {
	script = "set -e\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" // a failure leaves no server behind
	blocks := shellBlock.FindAllStringSubmatch(page, -1)
	require.GreaterOrEqual(t, len(blocks), 8)
	for _, b := range blocks {
		script += b[1]
	}
	ports = map[string]string{}
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	return address.ReplaceAllStringFunc(script, func(address string) string {
		if ports[address] == "" {
			ports[address] = shared.Addr(t)
		}
		return ports[address]
	}), ports
}

// paste runs a script in the checkout, and returns what it prints.
func paste(t *testing.T, script string) string {
	script = patient(t, script)
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = shared.Testdata(t, "..")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", script, out)
	assert.NotContains(t, string(out), "hhfr: error", "%s", out)
	assert.NotContains(t, string(out), "Traceback", "%s", out)
	return string(out)
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
