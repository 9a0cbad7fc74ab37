//go:build interop

package middleboxes_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// run starts a program in the foreground, waits until something listens at an address, and ends it
// with the test.
func run(t *testing.T, addr, program string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), shared.Program(t, program), args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = patience
	require.NoError(t, c.Start())
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", program, &said)
		}
	})
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", program, &said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// write writes a text to a file of the test's own folder, which programs that change their user can
// read.
func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// nginx runs it with these directives in its http block; they listen on the first address.
func nginx(t *testing.T, addr, directives string) {
	t.Helper()
	conf := write(t, "nginx.conf", `
daemon off;
pid nginx.pid;
error_log stderr info;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
`+directives+`
}
`)
	args := []string{"-p", filepath.Dir(conf), "-c", conf, "-e", "stderr"}
	if os.Geteuid() == 0 {
		args = append(args, "-g", "user root;") // the folder is the test's alone
	}
	run(t, addr, "nginx", args...)
}

// haproxy runs it with these sections after its defaults.
func haproxy(t *testing.T, addr, sections string) {
	t.Helper()
	run(t, addr, "haproxy", "-db", "-f", write(t, "haproxy.cfg", `
defaults
	timeout connect 5s
	timeout client 30s
	timeout server 30s
`+sections+"\n"))
}

// squid runs it as a forward proxy, with more lines of configuration.
func squid(t *testing.T, more string) (addr string) {
	t.Helper()
	addr = shared.Addr(t)
	conf := write(t, "squid.conf", `
http_port `+addr+`
cache deny all
access_log none
cache_log /dev/null
pid_filename none
netdb_filename none
pinger_enable off
shutdown_lifetime 0 seconds
`+more+"\nhttp_access allow all\n")
	run(t, addr, "squid", "-N", "-f", conf)
	return addr
}
