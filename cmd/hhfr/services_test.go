package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
)

// printedServices runs hhfr serve on free ports as long as the test, and gives what it printed, once as JSON and once as text.
func printedServices(t testing.TB, output string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said := firstLine{make(chan []byte, 1)}
	done := make(chan int)
	var errs bytes.Buffer
	go func() {
		done <- execute(ctx, Env{Out: said, Err: &errs}, []string{"serve", "--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "-o", output, "-q"}, func(line string) { errs.WriteString(line + "\n") })
	}()
	t.Cleanup(func() {
		cancel()
		assert.Zero(t, <-done, &errs)
	})
	return string(<-said.lines)
}

// TestCurlLines: every service answers the line printed for it, as pasted into a shell.
func TestCurlLines(t *testing.T) {
	for _, program := range []string{"curl", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("HHFR_CI") == "1" {
				t.Fatal(err)
			}
			t.Skipf("%v", err)
		}
	}
	operations := map[string]string{
		"blob": "blobResponse", "concat": "concatResponse", "echo": "hello", "geoip": "geoipResponse", "records": "recordsResponse", "sum": "sumResponse", "ticker": "tickerResponse",
	}
	call := func(t *testing.T, line, operation string) {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		require.NoError(t, err, "%s\n%s", line, out)
		assert.Equal(t, operation, soap.Recognize(out).Operation.Local, "%s\n%s", line, out)
	}
	var lines struct{ Services map[string]serviceLine }
	require.NoError(t, json.Unmarshal([]byte(printedServices(t, "json")), &lines))
	require.Len(t, lines.Services, len(operations))
	for name, l := range lines.Services {
		call(t, l.Curl, operations[name])
		if l.WSDL != "" {
			out, err := exec.CommandContext(t.Context(), "curl", "-sf", l.WSDL).Output()
			require.NoError(t, err)
			assert.Contains(t, string(out), `location="`+l.URL+`"`)
		}
	}
	calls := 0
	for line := range strings.Lines(printedServices(t, "text")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			calls++
			call(t, line, operations[line[strings.LastIndexByte(line, '/')+1:]])
		}
	}
	assert.Equal(t, len(operations), calls)
}
