package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/shared"
)

// servers are the commands that run until they are interrupted.
var servers = map[string]bool{"serve": true, "proxy": true}

// measuring are the commands that fail if the machine is too busy to measure.
var measuring = map[string]bool{"bench": true, "demo": true}

// onScreens are the commands that need a terminal (TestInspectOnATerminal).
var onScreens = map[string]bool{"inspect": true}

// TestExamples: the lines of the help texts work as pasted, in their order, with the files that
// they name. Only addresses are replaced. Examples of servers elsewhere, and of commands that
// measure, are left out.
func TestExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a POSIX shell")
	}
	// exactly-once needs a persistent store
	service, stop := serveHere(t, "--store", "bolt:"+filepath.Join(t.TempDir(), "server.db"))
	defer stop()
	reliable, stop := serveHere(t, "--store", "bolt:"+filepath.Join(t.TempDir(), "reliable.db"), "--soap-rm", "all")
	defer stop()
	hostOf := func(service string) string {
		u, err := url.Parse(service)
		require.NoError(t, err)
		return u.Host
	}
	root := newRoot(&command.Global{})
	for _, c := range append(root.Commands(), root) {
		if c.Example == "" || measuring[c.Name()] || onScreens[c.Name()] {
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			dir := exampleFiles(t)
			for line := range strings.Lines(c.Example) {
				line = strings.TrimSpace(line)
				switch {
				case line == "" || strings.HasPrefix(line, "#") || strings.Contains(line, ".example/"),
					measuring[commandOf(root, line)]:
				case servers[commandOf(root, line)]:
					serveExample(t, exampleFiles(t), strings.ReplaceAll(line, ":9090", ":0")+" --listen 127.0.0.1:0")
				default:
					host := hostOf(service)
					if strings.Contains(line, "--soap-rm") {
						host = hostOf(reliable)
					}
					places := strings.NewReplacer("127.0.0.1:8080", host, "127.0.0.1:8081", "127.0.0.1:0")
					runExample(t, dir, places.Replace(line))
				}
			}
		})
	}
}

// commandOf is the name of the command at the beginning of a line.
func commandOf(root *cobra.Command, line string) string {
	c, _, err := root.Find(strings.Fields(line)[1:])
	if err != nil {
		return ""
	}
	return c.Name()
}

// exampleFiles creates a folder with the files that examples name.
func exampleFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	body := []byte(`<q xmlns="urn:q">1</q>`)
	message := shared.Read(t, shared.Testdata(t, "soap", "cwmp-inform.xml"))
	plain := shared.Read(t, shared.Testdata(t, "pcap", "plain.pcapng"))
	recording := shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng"))
	for name, octets := range map[string][]byte{
		"add.xml": []byte(entryMessage(1)), "more.xml": []byte(entryMessage(2)),
		"message.xml": message, "a.xml": message, "b.xml": body, "body.xml": body,
		"requests.xml":   append(message, body...),
		"tenant.xml":     []byte(tenantBlock),
		"service.wsdl":   []byte(sumWSDL),
		"request.json":   []byte(`{"item": [1, 2.5]}`),
		"requests.jsonl": []byte(`{"item":[1]}` + "\n" + `{"item":[2]}` + "\n"),
		"pair.conf":      []byte("[proxy]\nupstream = http://127.0.0.1:8080/echo\n"),
		"session.pcapng": recording, "server.pcapng": recording, "plain.pcapng": plain,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), octets, 0o600))
	}
	writeCertificates(t, dir)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "store"), os.DirFS(shared.Testdata(t, "pcap", "store"))))
	return dir
}

func example(ctx context.Context, dir, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir = dir
	c.Env = append(os.Environ(), "HHFR_SHARED=", "TMPDIR="+dir)
	return c
}

func runExample(t *testing.T, dir, line string) {
	t.Helper()
	out, err := example(t.Context(), dir, line).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	require.NotContains(t, string(out), "hhfr: error:", line)
}

// serveExample runs a server until it prints something, and ends it.
func serveExample(t *testing.T, dir, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a server that never prints anything
	defer cancel()
	c := example(ctx, dir, "exec "+line)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said := bufio.NewReader(out)
	_, err = said.ReadString('\n')
	require.NoError(t, c.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, said)
	ended := c.Wait()
	require.NoError(t, err, "%s said nothing\n%s", line, &errs)
	require.NoError(t, ended, "%s\n%s", line, &errs)
}
