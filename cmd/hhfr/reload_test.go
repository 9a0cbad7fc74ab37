//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/server"
	"github.com/hhfr/hhfr/internal/shared"
)

// renewal is a server whose files are renewed in place.
type renewal struct {
	*proxyProcess
	dir      string
	old, new *shared.Authority
	trusted  *x509.CertPool // both
}

func newRenewal(t *testing.T) *renewal {
	t.Helper()
	r := &renewal{dir: t.TempDir(), old: shared.NewAuthority(t), new: shared.NewAuthority(t)}
	r.trusted = x509.NewCertPool()
	for i, a := range []*shared.Authority{r.old, r.new} {
		pem := shared.Read(t, a.WriteFile(r.dir, [2]string{"old.pem", "new.pem"}[i]))
		require.True(t, r.trusted.AppendCertsFromPEM(pem))
	}
	return r
}

func (r *renewal) file(name string) string { return filepath.Join(r.dir, name) }

func (r *renewal) write(name, text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(r.file(name), []byte(text), 0o600))
}

// hangup sends SIGHUP, and waits for a line that begins so.
func (r *renewal) hangup(line string) {
	r.t.Helper()
	before := strings.Count(r.errs.String(), line)
	require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(r.t, func() bool {
		return strings.Count(r.errs.String(), line) > before
	}, time.Minute, 10*time.Millisecond, "%s: %s", line, &r.errs)
}

// shown is the certificate that a new client gets, which has one of its own and maybe a ticket of
// an earlier connection.
func (r *renewal) shown(own tls.Certificate, tickets tls.ClientSessionCache) (*tls.ConnectionState, error) {
	conn, err := net.Dial("tcp", r.listen)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c := tls.Client(conn, &tls.Config{
		RootCAs: r.trusted, ServerName: "127.0.0.1", Certificates: []tls.Certificate{own}, ClientSessionCache: tickets,
	})
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if err == nil {
		_, err = io.ReadAll(c) // with the ticket
	}
	state := c.ConnectionState()
	return &state, err
}

// TestReload: a server shows the certificate, and admits by the authorities and tokens, that its
// files have when it gets a SIGHUP; a ticket of a client that is no longer admitted opens nothing.
// Files that are wrong change nothing, and connections that are open stay.
func TestReload(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(echo.Close)
	for _, kind := range []string{"serve", "proxy", "proxy --config"} {
		t.Run(kind, func(t *testing.T) {
			r := newRenewal(t)
			r.proxyProcess = &proxyProcess{t: t}
			own := r.old.Issue(time.Hour, "127.0.0.1")
			shared.WriteCertificate(t, r.dir, "server", own)
			r.old.WriteFile(r.dir, "ca.pem")
			r.write("tokens", "first\n")
			args := []string{"serve", "--listen", "127.0.0.1:0"}
			if kind != "serve" {
				args = []string{"proxy", "--listen", "127.0.0.1:0", "--upstream", echo.URL, "--no-offer"}
			}
			if kind == "proxy --config" {
				r.write("far.conf", "upstream = "+echo.URL+"\n")
				args = []string{"proxy", "--listen", "127.0.0.1:0", "--no-offer", "--config", r.file("far.conf")}
			}
			args = append(args, "-o", "json", "--cert", r.file("server.pem"), "--key", r.file("server.key"),
				"--client-ca", r.file("ca.pem"), "--negotiate", "bearer:"+r.file("tokens"),
				"--context", "bearer:"+r.file("tokens"))
			r.proxyProcess = startCommand(t, exec.CommandContext(t.Context(), "hhfr", args...))
			before, after := r.old.Issue(time.Hour), r.new.Issue(time.Hour)
			shared.WriteCertificate(t, r.dir, "before", before)
			shared.WriteCertificate(t, r.dir, "after", after)
			message := shared.Testdata(t, "soap", "cwmp-inform.xml")
			asks := func(who, ca, token string) int {
				code, _, _ := do(t, "stream", "https://"+r.listen+"/echo", message, "--require-hhfr", "-q",
					"--cacert", r.file(ca), "--cert", r.file(who+".pem"), "--key", r.file(who+".key"),
					"-H", "Authorization: Bearer "+token, "--mode", "explicit")
				return code
			}
			open := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{
				RootCAs: r.trusted, Certificates: []tls.Certificate{before}}}}
			t.Cleanup(open.CloseIdleConnections)
			calls := func() {
				resp, err := open.Post("https://"+r.listen+"/echo", "text/plain", strings.NewReader("call"))
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, own.Certificate[0], resp.TLS.PeerCertificates[0].Raw)
			}
			lists := func(who tls.Certificate, token string) bool {
				fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
					RootCAs: r.trusted, Certificates: []tls.Certificate{who}}}}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					"https://"+r.listen+server.ContextPath,
					strings.NewReader(serve.ContextExample))
				require.NoError(t, err)
				req.Header.Set("Content-Type", "text/xml; charset=utf-8")
				req.Header.Set("Authorization", "Bearer "+token)
				resp, err := fresh.Do(req)
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.NotEqual(t, serve.ContextExample, string(body), "it is not the echo")
				return resp.StatusCode == http.StatusOK
			}
			calls()
			assert.True(t, lists(before, "first"))
			tickets := tls.NewLRUClientSessionCache(4)
			for i := range 2 {
				state, err := r.shown(before, tickets)
				require.NoError(t, err)
				assert.Equal(t, i > 0, state.DidResume)
				assert.Equal(t, own.Certificate[0], state.PeerCertificates[0].Raw)
			}
			assert.Zero(t, asks("before", "old.pem", "first"))

			next := r.new.Issue(2*time.Hour, "127.0.0.1")
			shared.WriteCertificate(t, r.dir, "server", next)
			r.write("tokens", "second\n")
			r.new.WriteFile(r.dir, "ca.pem")
			r.hangup("hhfr: reloaded --cert " + r.file("server.pem") + " (valid until ")
			r.told(", --client-ca " + r.file("ca.pem") + ", --negotiate " + r.file("tokens"))
			renewed := func() {
				t.Helper()
				_, err := r.shown(before, tickets)
				require.Error(t, err, "its authority is gone")
				state, err := r.shown(after, nil)
				require.NoError(t, err)
				assert.Equal(t, next.Certificate[0], state.PeerCertificates[0].Raw)
				assert.Zero(t, asks("after", "new.pem", "second"))
				assert.Equal(t, exit.NoPeer, asks("after", "new.pem", "first"))
				assert.True(t, lists(after, "second"))
				assert.False(t, lists(after, "first"))
				calls() // over the connection that was open
			}
			renewed()

			for file, wrong := range map[string]string{
				"server.key": "--cert " + r.file("server.pem") + ", --key " + r.file("server.key"),
				"ca.pem":     "--client-ca " + r.file("ca.pem") + " has no certificate in PEM",
				"tokens":     "--negotiate: " + r.file("tokens") + " has no token",
			} {
				good := string(shared.Read(t, r.file(file)))
				r.write(file, "")
				r.hangup("hhfr: not reloaded, everything stays as it is: " + wrong)
				r.write(file, good)
			}
			assert.Contains(t, r.errs.String(), "; mend that, and send SIGHUP again\n")
			renewed()
		})
	}
}

// A proxy shows its upstream the certificate, and trusts those, that its files have at SIGHUP:
// connections that are opened then do, and the stream that is open stays.
func TestReloadTowardUpstream(t *testing.T) {
	for _, config := range []bool{false, true} {
		t.Run(map[bool]string{false: "flags", true: "--config"}[config], func(t *testing.T) {
			r := newRenewal(t)
			seen := make(chan []byte, 1)
			upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "close")
				seen <- r.TLS.PeerCertificates[0].Raw
			}))
			upstream.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert,
				Certificates: []tls.Certificate{r.old.Issue(time.Hour, "127.0.0.1")}}
			upstream.Config.ErrorLog = log.New(io.Discard, "", 0)
			upstream.StartTLS()
			t.Cleanup(upstream.Close)
			first, second := r.old.Issue(time.Hour), r.old.Issue(2*time.Hour)
			shared.WriteCertificate(t, r.dir, "near", first)
			r.old.WriteFile(r.dir, "ca.pem")
			args := []string{"proxy", "--listen", "127.0.0.1:0", "-o", "json", "--no-offer"}
			flags := []string{"upstream", upstream.URL, "cacert", r.file("ca.pem"), "upstream-cert", r.file("near.pem"),
				"upstream-key", r.file("near.key")}
			lines := ""
			for i := 0; i < len(flags); i += 2 {
				if lines += flags[i] + " = " + flags[i+1] + "\n"; !config {
					args = append(args, "--"+flags[i], flags[i+1])
				}
			}
			if config {
				require.NoError(t, os.WriteFile(r.file("near.conf"), []byte(lines), 0o600))
				args = append(args, "--config", r.file("near.conf"))
			}
			r.proxyProcess = startCommand(t, exec.CommandContext(t.Context(), "hhfr", args...))
			status := func() int {
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				resp, err := client.Get(r.url("/"))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				return resp.StatusCode
			}
			require.Equal(t, http.StatusOK, status())
			require.Equal(t, first.Certificate[0], <-seen)

			shared.WriteCertificate(t, r.dir, "near", second)
			r.hangup("--upstream-cert " + r.file("near.pem") + " (valid until ")
			require.Equal(t, http.StatusOK, status())
			require.Equal(t, second.Certificate[0], <-seen)

			r.new.WriteFile(r.dir, "ca.pem")
			r.hangup("hhfr: reloaded --cacert " + r.file("ca.pem"))
			require.Equal(t, http.StatusBadGateway, status(), "the upstream's is of the old authority")
			r.write("ca.pem", "")
			r.hangup("hhfr: not reloaded, everything stays as it is: --cacert " + r.file("ca.pem"))
			require.Equal(t, http.StatusBadGateway, status())
		})
	}
}

// The stream of a pair outlives the renewal of the certificates of both halves.
func TestReloadKeepsTheStream(t *testing.T) {
	r := newRenewal(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(echo.Close)
	for _, name := range []string{"far", "near"} {
		shared.WriteCertificate(t, r.dir, name, r.old.Issue(time.Hour, "127.0.0.1"))
	}
	r.old.WriteFile(r.dir, "ca.pem")
	start := func(args ...string) *renewal {
		args = append([]string{"proxy", "--listen", "127.0.0.1:0", "-o", "json", "-v"}, args...)
		half := *r
		half.proxyProcess = startCommand(t, exec.CommandContext(t.Context(), "hhfr", args...))
		return &half
	}
	far := start("--upstream", echo.URL, "--no-offer", "--cert", r.file("far.pem"), "--key", r.file("far.key"),
		"--client-ca", r.file("ca.pem"))
	near := start("--upstream", "https://"+far.listen+"/", "--cacert", r.file("ca.pem"),
		"--upstream-cert", r.file("near.pem"), "--upstream-key", r.file("near.key"))
	near.linked(1)
	near.calls(0, 5)
	for _, name := range []string{"far", "near"} {
		shared.WriteCertificate(t, r.dir, name, r.new.Issue(time.Hour, "127.0.0.1"))
	}
	r.new.WriteFile(r.dir, "ca.pem")
	far.hangup("hhfr: reloaded ")
	near.hangup("hhfr: reloaded ")
	near.calls(5, 10)
	assert.Equal(t, 1, strings.Count(near.errs.String(), "msg=session "), near.errs.String())
}
