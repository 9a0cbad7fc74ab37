//go:build interop

package middleboxes_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// binary builds the command.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hhfr")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/hhfr").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// process is a running server of the binary.
type process struct {
	addr string
	mu   sync.Mutex
	errs bytes.Buffer
}

// Write collects its stderr.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs.String()
}

// start starts hhfr serve or hhfr proxy, and waits until it has printed where it listens.
func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := new(process)
	c := exec.CommandContext(t.Context(), program, append(args, "-o", "json")...)
	c.Stderr = p
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, p.said())
	var says struct {
		Addresses map[string]string
		Services  map[string]struct{ URL string }
	}
	require.NoError(t, json.Unmarshal(line, &says), "%s", line)
	p.addr = says.Addresses["http"]
	if s, ok := says.Services["echo"]; ok {
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		p.addr = u.Host
	}
	return p
}

// stream runs hhfr stream, and returns what it prints about its session and anything else.
func stream(t *testing.T, program, url string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program,
		append([]string{"stream", url, shared.Testdata(t, "soap", "cwmp-inform.xml"), "--repeat", "5"}, args...)...)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(t, c.Run(), &errs)
	return errs.String()
}

// explicit are the arguments that make hhfr stream negotiate by offers.
func explicit(t *testing.T, program string) []string {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), program, "stream", "--help").CombinedOutput()
	require.NoError(t, err)
	if strings.Contains(string(help), "--mode") {
		return []string{"--mode", "explicit"}
	}
	return nil
}

// binaryBehindNginx: the command's server behind nginx, with its port reachable, and with that of
// --tcp not reachable.
func binaryBehindNginx(t *testing.T) {
	program := binary(t)
	open := start(t, program, "serve", "--listen", "127.0.0.1:0")
	said := stream(t, program, "http://"+nginxOf(t, open.addr, "")+"/echo", explicit(t, program)...)
	assert.NotContains(t, said, "plain SOAP")

	closed := start(t, program, "serve", "--listen", "127.0.0.1:0", "--tcp", "127.0.0.2:0", "--udp", "none")
	for _, front := range []string{closed.addr, nginxOf(t, closed.addr, "")} {
		said = stream(t, program, "http://"+front+"/echo", explicit(t, program)...)
		assert.Equal(t, 1, strings.Count(said, "plain SOAP: no stream to 127.0.0.1:"), said)
		assert.Equal(t, 1, strings.Count(said, "hint: open that port"), said)
	}
}

// pairBehindNginx: the far proxy of a pair behind nginx. Clients get what they get without it.
func pairBehindNginx(t *testing.T) {
	program := binary(t)
	service := start(t, program, "serve", "--listen", "127.0.0.1:0")
	far := start(t, program, "proxy", "--listen", "127.0.0.1:0", "--upstream", "http://"+service.addr+"/echo",
		"--no-offer")
	for name, location := range map[string]string{"as it comes": "", "passes upgrades": passes} {
		near := start(t, program, "proxy", "--listen", "127.0.0.1:0", "--upstream",
			"http://"+nginxOf(t, far.addr, location)+"/echo", "-v")
		post := func() {
			const text = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>`
			resp, err := http.Post("http://"+near.addr+"/echo", "text/xml", strings.NewReader(text))
			require.NoError(t, err)
			defer resp.Body.Close()
			var got bytes.Buffer
			_, err = got.ReadFrom(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, text, got.String())
		}
		post()
		require.Eventually(t, func() bool {
			return strings.Contains(near.said(), "msg=session ")
		}, patience, tick, "%s: %s", name, near.said())
		for range 3 {
			post()
		}
		assert.NotContains(t, near.said(), "level=WARN", name)
	}
}
