package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/internal/shared"
)

// do runs a command line in this process.
func do(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return doWith(t, "", args...)
}

// doWith is do with a text on stdin.
func doWith(t testing.TB, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	to, toErr := keeping(args, &out, &errs)
	code = execute(t.Context(), command.Env{In: strings.NewReader(in), Out: to, Err: toErr}, args)
	return code, out.String(), errs.String()
}

// firstLine passes on the first lines that a server prints.
type firstLine struct{ lines chan []byte }

func (f firstLine) Write(b []byte) (int, error) {
	select {
	case f.lines <- bytes.Clone(b):
	default:
	}
	return len(b), nil
}

// serveHere runs hhfr serve on free ports until the test stops it, and returns the URL of its echo
// service.
func serveHere(t testing.TB, args ...string) (url string, stop func()) {
	t.Helper()
	services, stop := servicesHere(t, args...)
	return services["echo"].URL, stop
}

// servicesHere is serveHere, but returns all services.
func servicesHere(t testing.TB, args ...string) (services map[string]serve.ServiceLine, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said := firstLine{make(chan []byte, 1)}
	done := make(chan int)
	var errs bytes.Buffer
	go func() {
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "-o", "json", "-q"}, args...)
		to, toErr := keeping(args, said, &errs)
		done <- execute(ctx, command.Env{Out: to, Err: toErr}, args)
	}()
	var serve struct{ Services map[string]serve.ServiceLine }
	select {
	case line := <-said.lines:
		require.NoError(t, json.Unmarshal(line, &serve))
	case code := <-done:
		t.Fatalf("serve ended with %d: %s", code, errs.String())
	}
	require.NotEmpty(t, serve.Services)
	return serve.Services, func() {
		cancel()
		require.Zero(t, <-done, errs.String())
	}
}

type streamSummary struct{ Summary results.RunSummary }

func lastSummary(t testing.TB, stdout string) results.RunSummary {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var s streamSummary
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &s))
	return s.Summary
}

// TestCorpusThroughTheCommands: every real message, twice in one session, comes back byte for byte;
// decode and reconstruct give the same, the latter from raw bytes and a copy of the server's store.
func TestCorpusThroughTheCommands(t *testing.T) {
	paths := shared.SomeMessages(t)
	assert.GreaterOrEqual(t, len(paths), shared.Some(378))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	url, stop := serveHere(t, "--store", at("server"), "--sync", "4KiB")
	args := append([]string{"stream", url}, paths...)
	code, stdout, stderr := do(t, append(args, "--repeat", "2", "--sync", "4KiB", "--save-dir", at("out"), "--record",
		at("client.pcapng"), "--require-hhfr", "-o", "json")...)
	require.Zero(t, code, stderr)
	s := lastSummary(t, stdout)
	require.Equal(t, 2*len(paths), s.Messages)
	require.Zero(t, s.Failed)
	stop()
	require.NoError(t, os.CopyFS(at("copy"), os.DirFS(at("server"))))

	code, _, stderr = do(t, "decode", at("client.pcapng"), "--store", at("copy"), "--save-dir", at("decoded"),
		"--write-streams", at("raw"))
	require.Zero(t, code, stderr)
	raw, err := filepath.Glob(at("raw/*"))
	require.NoError(t, err)
	require.Len(t, raw, 2)
	code, _, stderr = do(t, append(append([]string{"reconstruct"}, raw...), "--store", at("copy"), "--save-dir",
		at("rebuilt"))...)
	require.Zero(t, code, stderr)

	for i := range 2 * len(paths) {
		want := shared.Read(t, paths[i%len(paths)])
		for _, from := range []string{"out", "decoded", "rebuilt"} {
			for _, kind := range []string{"request", "reply"} {
				name := fmt.Sprintf("%06d-%s.xml", i+1, kind)
				require.True(t, bytes.Equal(want, shared.Read(t, filepath.Join(dir, from, name))), "%s/%s is not %s",
					from, name, paths[i%len(paths)])
			}
		}
	}
}

// TestTenFloats: at most 48 bytes per message on the stream, including framing and sync frames,
// without shape frames.
func TestTenFloats(t *testing.T) {
	paths := shared.Files(t, filepath.Join(shared.Dir(t, "workloads"), "w2-10floats"), nil)
	url, stop := serveHere(t)
	defer stop()
	code, stdout, stderr := do(t, append([]string{"stream", url, "--require-hhfr", "-o", "json"}, paths...)...)
	require.Zero(t, code, stderr)
	s := lastSummary(t, stdout)
	mean := float64(s.Stream.Sent-s.Shapes.Sent) / float64(len(paths))
	t.Logf("%.1f bytes per message, hello and close included", mean)
	assert.LessOrEqual(t, mean, 48.0)
}
