package main

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// manager is a service manager that has started a server.
type manager struct {
	*testing.T
	socket *net.UnixConn
	server *exec.Cmd
	errs   said
	addr   string // where the server listens
}

// manage starts `hhfr ARGS` with a limit on its file descriptors, as systemd would with Type=notify
// and WatchdogSec=.
func manage(t *testing.T, watchdog, command string) *manager {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a POSIX shell starts the server")
	}
	name := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	m := &manager{T: t, socket: socket, server: exec.CommandContext(t.Context(), shared.Program(t, "sh"), "-c",
		"ulimit -n 64 && exec "+command)}
	m.server.Env = append(os.Environ(), "NOTIFY_SOCKET="+name, "WATCHDOG_USEC="+watchdog)
	m.server.Stderr = &m.errs
	out, err := m.server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, m.server.Start())
	t.Cleanup(func() { _ = m.server.Process.Kill(); _ = m.server.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", &m.errs)
	m.addr = regexp.MustCompile(`"http":"([^"]+)"`).FindStringSubmatch(line)[1]
	return m
}

// hears waits for a datagram, and returns the others that came before it.
func (m *manager) hears(want string) (before []string) {
	m.Helper()
	b := make([]byte, 4096)
	for {
		n, err := m.socket.Read(b)
		require.NoError(m, err)
		if text := string(b[:n]); regexp.MustCompile(want).MatchString(text) {
			return before
		}
		before = append(before, string(b[:n]))
	}
}

// TestServiceManager: a server tells its manager when it serves, reloads and stops. The watchdog
// hears of it as long as connections to it are served: not while clients have all its file
// descriptors, and again when they have left.
func TestServiceManager(t *testing.T) {
	dir := t.TempDir()
	writeCertificates(t, dir)
	for name, command := range map[string]string{
		"serve": "hhfr serve --listen 127.0.0.1:0 -o json",
		"serve over TLS": "hhfr serve --listen 127.0.0.1:0 -o json --cert " + dir + "/server.pem --key " + dir +
			"/server.key",
		"proxy": "hhfr proxy --listen 127.0.0.1:0 --upstream http://127.0.0.1:1/ -o json",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := manage(t, "200000", command)
			assert.Empty(t, m.hears(`(?s)^READY=1\nSTATUS=.*`+regexp.QuoteMeta(m.addr)))
			m.hears(`^WATCHDOG=1$`)
			require.NoError(t, m.server.Process.Signal(syscall.SIGHUP))
			m.hears(`(?s)^RELOADING=1\nMONOTONIC_USEC=\d+$`)
			for _, other := range m.hears(`(?s)^READY=1\n`) {
				assert.Equal(t, "WATCHDOG=1", other)
			}

			var clients []net.Conn
			for range 80 { // more than it has descriptors
				c, err := net.Dial("tcp", m.addr)
				require.NoError(t, err)
				clients = append(clients, c)
			}
			m.hears(`^STATUS=does not answer: `)
			for _, c := range clients {
				require.NoError(t, c.Close())
			}
			for _, other := range m.hears(`^STATUS=(services|clients) `) {
				assert.NotEqual(t, "WATCHDOG=1", other, "it did not answer")
			}
			m.hears(`^WATCHDOG=1$`)

			require.NoError(t, m.server.Process.Signal(syscall.SIGTERM))
			m.hears(`^STOPPING=1$`)
			assert.NoError(t, m.server.Wait(), "%s", &m.errs)
			assert.NotContains(t, m.errs.String(), "handshake")
		})
	}
}

// Probes reach no upstream, and disturb no client.
func TestProbesStayHere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	seen := make(chan string, 100)
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r.URL.Path }))
	}()
	t.Cleanup(func() { _ = l.Close() })
	m := manage(t, "20000",
		"hhfr proxy --listen 127.0.0.1:0 --tcp none --upstream http://"+l.Addr().String()+"/up -o json")
	m.hears(`(?s)^READY=1\n`)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const calls = 50
	for range calls {
		resp, err := client.Get("http://" + m.addr + "/call")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		m.hears(`^WATCHDOG=1$`)
	}
	close(seen)
	got := map[string]int{}
	for path := range seen {
		got[path]++
	}
	delete(got, "/up") // it asks for a stream
	assert.Equal(t, map[string]int{"/call": calls}, got)
}

// What a manager sets wrongly is a wrong command line, and a manager that is gone ends no server.
func TestServiceManagerOfAnotherKind(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "relative")
	var errs strings.Builder
	assert.Equal(t, exit.WrongUsage, execute(t.Context(), command.Env{Out: &errs, Err: &errs}, []string{"serve"}))
	assert.Contains(t, errs.String(), "NOTIFY_SOCKET=relative")

	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	url, stop := serveHere(t)
	resp, err := http.Get(url + "?wsdl")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	stop()
}
