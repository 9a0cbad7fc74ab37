//go:build interop

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// contextServiceHere runs hhfr context serve until the test ends, and returns its URL.
func contextServiceHere(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said := firstLine{make(chan []byte, 1)}
	done := make(chan int)
	var errs bytes.Buffer
	go func() {
		args := append([]string{"context", "serve", "--listen", "127.0.0.1:0", "-o", "json", "-q"}, args...)
		done <- execute(ctx, command.Env{Out: said, Err: &errs}, args)
	}()
	t.Cleanup(func() {
		cancel()
		assert.Equal(t, exit.Done, <-done, errs.String())
	})
	var service struct{ URL string }
	require.NoError(t, json.Unmarshal(<-said.lines, &service))
	return service.URL
}

// TestInteropContextZeep: another SOAP library uses a context service by its description, in both
// versions of SOAP. It is installed into a folder of the test's.
func TestInteropContextZeep(t *testing.T) {
	python := shared.Program(t, "python3")
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s %s\n%s", program, strings.Join(args, " "), out)
		return string(out)
	}
	run(python, "-m", "venv", dir)
	python = filepath.Join(dir, "bin", "python")
	run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", zeepRelease)
	url := contextServiceHere(t, "--store", filepath.Join(t.TempDir(), "store"))
	assert.Contains(t, run(python, shared.Testdata(t, "interop", "zeep_context.py"), url), "agrees")
}

// TestInteropContextXMLLint: the description is a schema to another program, too.
func TestInteropContextXMLLint(t *testing.T) {
	program := shared.Program(t, "xmllint")
	curl := shared.Program(t, "curl")
	url := contextServiceHere(t, "--store", "mem:")
	line := curl + " -sf '" + url + "?wsdl' | " + program + " --noout -"
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
