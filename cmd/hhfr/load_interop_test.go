//go:build interop && linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/bench"
	"github.com/hhfr/hhfr/internal/shared"
)

// loaded is a server that answers operation records on one core, and how it is asked.
type loaded struct {
	name, way string
	clients   int
	command   []string
	url       func(first string) string // by the first line that it prints
}

// TestInteropLoadPerSecond: what hhfr serve answers in a second of processor time, on one core,
// beside CXF and gSOAP, by the same requests: plain SOAP at least 3 times CXF's, over a stream with
// 64 requests in flight at least 2 times gSOAP's. All of them are warm, and answers are checked.
func TestInteropLoadPerSecond(t *testing.T) {
	taskset := shared.Program(t, "taskset")
	dir, sources := t.TempDir(), shared.Testdata(t, "interop", "stacks")
	build := exec.CommandContext(t.Context(), "sh", filepath.Join(sources, "build.sh"), dir, "keys", "java", "gsoap")
	build.Env = append(os.Environ(), "OPTIMIZE=-O2")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	message := filepath.Join(dir, "records.xml")
	const request = `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>` +
		`<records xmlns="urn:hhfr:peer:1"><record><text>one</text><number>1</number><flag>true</flag></record>` +
		`</records></soap:Body></soap:Envelope>`
	require.NoError(t, os.WriteFile(message, []byte(request), 0o600))
	key, cert := filepath.Join(dir, "key.pem"), filepath.Join(dir, "cert.pem")
	serve := []string{"hhfr", "serve", "--listen", "127.0.0.1:0", "-o", "json"}
	ours := func(first string) string {
		var told struct {
			Services map[string]struct{ URL string }
		}
		require.NoError(t, json.Unmarshal([]byte(first), &told))
		return told.Services["records"].URL
	}
	at := func(path string) func(string) string {
		return func(port string) string { return "http://127.0.0.1:" + strings.TrimSpace(port) + path }
	}
	perSecond := map[string]float64{}
	rows := "server,way,clients,answers,errors,seconds of processor time,answers a second of it\n"
	for _, l := range []loaded{
		{"serve", "soap-kept", 64, serve, ours},
		{"serve", "stream", 64, serve, ours},
		{"CXF", "soap-kept", 64, []string{"java", "-Dfile.encoding=UTF-8", "-Djava.util.logging.config.file=" +
			filepath.Join(sources, "quiet.properties"), "-cp", filepath.Join(dir, "classes") + ":" +
			filepath.Join(dir, "lib", "*"), "Stacks", key, cert, key}, at("/cxf/plain")},
		{"gSOAP", "soap-kept", 64, []string{filepath.Join(dir, "gsoap"), "server", key, cert}, at("/gsoap/plain")},
	} {
		server := exec.CommandContext(t.Context(), taskset, append([]string{"-c", "0"}, l.command...)...)
		server.Env = append(os.Environ(), "GOMAXPROCS=1")
		in, err := server.StdinPipe() // they end with it
		require.NoError(t, err)
		printed, err := server.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, server.Start())
		first, err := bufio.NewReader(printed).ReadString('\n')
		require.NoError(t, err)
		url := l.url(first)
		measure := func(seconds string) (answers, failed int64, took float64) {
			before := processorSeconds(t, server.Process.Pid)
			c := exec.CommandContext(t.Context(), taskset, "-c", "1", "hhfr", "bench", "load", url,
				"--message", message, "--expect", "number>1</", "--ways", l.way,
				"--clients", strconv.Itoa(l.clients), "--for", seconds, "--repeat", "1", "-o", "json")
			c.Env = append(os.Environ(), "GOMAXPROCS=1")
			var errs bytes.Buffer
			c.Stderr = &errs
			out, err := c.Output()
			require.NoError(t, err, "%s", &errs)
			var r bench.LoadReport
			require.NoError(t, json.Unmarshal(out, &r))
			row := r.Rows[0]
			require.Empty(t, row.Errors, "%v", row.Examples)
			return row.Successful, row.Responses - row.Successful, processorSeconds(t, server.Process.Pid) - before
		}
		measure("10s") // compilers and caches are warm then
		answers, failed, took := measure("10s")
		perSecond[l.name+" "+l.way] = float64(answers) / took
		rows += fmt.Sprintf("%s,%s,%d,%d,%d,%.2f,%.0f\n", l.name, l.way, l.clients, answers, failed, took,
			float64(answers)/took)
		_ = in.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	}
	t.Log("\n" + rows)
	if dir := os.Getenv("RESULTS_DIR"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "load-stacks.csv"), []byte(rows), 0o644))
	}
	assert.GreaterOrEqual(t, perSecond["serve soap-kept"], 3*perSecond["CXF soap-kept"])
	assert.GreaterOrEqual(t, perSecond["serve stream"], 2*perSecond["gSOAP soap-kept"])
}

// processorSeconds is the processor time that a process took so far (proc_pid_stat(5)).
func processorSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, behind, _ := strings.Cut(string(stat), ") ") // the name is in parentheses
	fields := strings.Fields(behind)
	user, err := strconv.ParseFloat(fields[11], 64)
	require.NoError(t, err)
	system, err := strconv.ParseFloat(fields[12], 64)
	require.NoError(t, err)
	const hertz = 100
	return (user + system) / hertz
}
