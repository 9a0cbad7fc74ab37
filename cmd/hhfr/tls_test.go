package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestCommandsOverTLS: stream, negotiate and replay call a server with a self-signed certificate
// that requires a client certificate; a recording has the cleartext.
func TestCommandsOverTLS(t *testing.T) {
	o := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(string(body), "urn:hhfr:negotiation:1") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	o.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	o.Config.ErrorLog = log.New(io.Discard, "", 0)
	o.StartTLS()
	t.Cleanup(o.Close)
	dir := t.TempDir()
	cert, key := certificate(t, dir, o.TLS.Certificates[0])
	record, keys := filepath.Join(dir, "session.pcapng"), filepath.Join(dir, "keys")
	t.Setenv("SSLKEYLOGFILE", keys)
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	plain := httptest.NewServer(o.Config.Handler)
	t.Cleanup(plain.Close)
	trusted := []string{"--cacert", cert, "--cert", cert, "--key", key}

	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"stream": {args: append([]string{"stream", o.URL, message, "--record", record}, trusted...),
			says: "plain SOAP"},
		"negotiate": {args: append([]string{"negotiate", o.URL}, trusted...)},
		"anyone": {args: []string{"negotiate", o.URL, "--insecure-skip-verify", "--cert", cert,
			"--key", key}},
		"nobody signed": {args: []string{"stream", o.URL, message}, code: exit.NoPeer, says: "--cacert FILE"},
		"https to http": {args: []string{"stream", strings.Replace(plain.URL, "http:", "https:", 1),
			message}, code: exit.NoPeer, says: "write http:// in the URL"},
		"cert without key": {args: []string{"stream", o.URL, message, "--cert", cert}, code: exit.WrongUsage,
			says: "--cert and --key go together"},
		"no certificates in there": {args: []string{"replay", message, "--to", o.URL, "--cacert", message},
			code: exit.WrongUsage, says: "has no certificate in PEM"},
		"no such file": {args: []string{"negotiate", o.URL, "--cacert", filepath.Join(dir, "none.pem")},
			code: exit.Failed, says: "none.pem: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := do(t, tc.args...)
			assert.Equal(t, tc.code, code, stderr)
			assert.Contains(t, stderr, tc.says)
		})
	}
	code, out, stderr := do(t, append([]string{"replay", record, "--to", o.URL, "-o", "json"}, trusted...)...)
	assert.Zero(t, code, stderr)
	assert.Contains(t, out, `"sent":1,"differences":0`)
	lines, err := os.ReadFile(keys)
	require.NoError(t, err)
	assert.Contains(t, string(lines), "CLIENT_TRAFFIC_SECRET_0 ")
}

// certificate writes a certificate and its key as PEM files.
func certificate(t *testing.T, dir string, c tls.Certificate) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// writeCertificates writes certificates and their keys as PEM files into a folder: ca.pem signed
// server, client, expired and elsewhere, which is for another host; others.pem signed stranger.
func writeCertificates(t *testing.T, dir string) {
	t.Helper()
	ca, others := shared.NewAuthority(t), shared.NewAuthority(t)
	ca.WriteFile(dir, "ca.pem")
	others.WriteFile(dir, "others.pem")
	for name, c := range map[string]tls.Certificate{
		"server": ca.Issue(time.Hour, "127.0.0.1"), "client": ca.Issue(time.Hour),
		"expired":   ca.Issue(-time.Hour, "127.0.0.1"),
		"elsewhere": ca.Issue(time.Hour, "far.example"), "stranger": others.Issue(time.Hour, "127.0.0.1"),
	} {
		shared.WriteCertificate(t, dir, name, c)
	}
}
