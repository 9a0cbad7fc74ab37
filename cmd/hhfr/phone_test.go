package main

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/resolve/resolvetest"
	"github.com/hhfr/hhfr/internal/shared"
)

// phone is hhfr on a simulated phone, in the folder PHONE; it was never compared with a real one.
// PHONE_OS is the system it was built for; what it sends to port 53 goes to PHONE_DNS. Only tests'
// hhfr reads these variables.
func phone() int {
	dir := os.Getenv("PHONE")
	return keptRun(resolve.System{
		GOOS: os.Getenv("PHONE_OS"), Properties: filepath.Join(dir, "properties"), Prefix: os.Getenv("PREFIX"),
		Socket: filepath.Join(dir, "dnsproxyd"), ResolvConf: filepath.Join(dir, "etc", "resolv.conf"),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if _, port, err := net.SplitHostPort(addr); err == nil && port == "53" {
				addr = os.Getenv("PHONE_DNS")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})
}

// androidResolver starts a resolver of Android: `androidresolver FILE HOST=ADDRESS…`, or
// `androidresolver FILE stranger` for one that knows no command.
func androidResolver(ts *testscript.TestScript, _ bool, args []string) {
	answer := func(_ string, conn net.Conn) { _, _ = io.WriteString(conn, "500 Command not recognized\x00") }
	if args[1] != "stranger" {
		hosts := map[string][]string{}
		for host, addr := range pairs(args[1:]) {
			hosts[host] = append(hosts[host], addr)
		}
		answer = resolvetest.Hosts(hosts)
	}
	stop, err := resolvetest.Android(ts.MkAbs(args[0]), answer)
	ts.Check(err)
	ts.Defer(stop)
}

// startDNS starts a DNS server and puts its address into a variable: `dnsserver NAME
// HOST=ADDRESS…`.
func startDNS(ts *testscript.TestScript, _ bool, args []string) {
	server, stop, err := resolvetest.DNS(pairs(args[1:]))
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv(args[0], server.String())
}

func pairs(args []string) map[string]string {
	m := map[string]string{}
	for _, arg := range args {
		host, addr, _ := strings.Cut(arg, "=")
		m[host] = addr
	}
	return m
}

// host puts another host into the variable URL: `host NAME`.
func host(ts *testscript.TestScript, _ bool, args []string) {
	u, err := url.Parse(ts.Getenv("URL"))
	ts.Check(err)
	u.Host = net.JoinHostPort(args[0], u.Port())
	ts.Setenv("URL", u.String())
}

// TestCertificatesOfTermux: the Linux build in Termux trusts whom Termux trusts, unless it is told
// whom to trust; no other build does.
func TestCertificatesOfTermux(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	dir := t.TempDir()
	prefix, none := filepath.Join(dir, "usr"), filepath.Join(dir, "none.pem")
	require.NoError(t, os.MkdirAll(filepath.Join(prefix, "etc", "tls"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "properties"), 0o700))
	signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(prefix, "etc", "tls", "cert.pem"), signed, 0o600))
	require.NoError(t, os.WriteFile(none, nil, 0o600))
	for name, tc := range map[string]struct {
		env     []string
		trusted bool
	}{
		"in Termux":     {[]string{"PREFIX=" + prefix}, true},
		"told whom":     {[]string{"PREFIX=" + prefix, "SSL_CERT_FILE=" + none}, false},
		"no Termux":     {nil, false},
		"other prefix":  {[]string{"PREFIX=" + dir}, false},
		"android build": {[]string{"PREFIX=" + prefix, "PHONE_OS=android"}, false},
		"no phone":      {[]string{"PREFIX=" + prefix, "PHONE=" + prefix}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), "phone", "stream", server.URL, message)
			bare := []string{"PHONE=" + dir, "PHONE_OS=linux", "SSL_CERT_FILE=", "SSL_CERT_DIR=", "PREFIX="}
			c.Env = slices.Concat(os.Environ(), bare, tc.env)
			out, err := c.CombinedOutput()
			if tc.trusted {
				require.NoError(t, err, "%s", out)
				assert.Contains(t, string(out), "plain SOAP")
				return
			}
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "%s", out)
			assert.Equal(t, exit.NoPeer, failed.ExitCode(), "%s", out)
			assert.Contains(t, string(out), "--cacert FILE")
		})
	}
}

func TestDNSServer(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":           "192.0.2.1:53",
		"192.0.2.1:5353":      "192.0.2.1:5353",
		"2001:db8::1":         "[2001:db8::1]:53",
		"[2001:db8::1]":       "[2001:db8::1]:53",
		"[2001:db8::1]:5353":  "[2001:db8::1]:5353",
		"fe80::1%wlan0":       "[fe80::1%wlan0]:53",
		"[fe80::1%wlan0]:530": "[fe80::1%wlan0]:530",
		"":                    "",
	} {
		d := command.DNSServer{AddrPort: netip.MustParseAddrPort("192.0.2.99:53")}
		require.NoError(t, d.Set(text), text)
		assert.Equal(t, want, d.String(), text)
	}
	for _, text := range []string{
		"dns.example", "localhost:53", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:70000", "192.0.2", ":53", "[192.0.2.1",
		" ",
	} {
		require.ErrorContains(t, new(command.DNSServer).Set(text), "a DNS server is IP, IP:PORT or [IPV6]:PORT, not",
			text)
	}
}

// The text of an error names the server that was asked, also in log lines.
func TestLogsNameTheServerAsked(t *testing.T) {
	var said strings.Builder
	g := &command.Global{Stderr: &said, LogFormat: "text",
		DNS: command.DNSServer{AddrPort: netip.MustParseAddrPort("192.0.2.1:53")}}
	g.Logger().Warn("x", "error", &net.DNSError{Err: "no such host", Name: "a", Server: "127.0.0.1:53"})
	assert.Contains(t, said.String(), `error="lookup a on 192.0.2.1:53: no such host"`)
}
