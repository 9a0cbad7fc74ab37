package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
)

// recordedRelay forwards connections to an address, and records what goes over them, which it does
// not understand. It returns its own address; end returns when all connections are over.
func recordedRelay(t *testing.T, to, file string) (address string, end func()) {
	t.Helper()
	out, err := os.Create(file)
	require.NoError(t, err)
	rec := pcapng.NewRecorder(out, nil)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
				if !assert.NoError(t, err) {
					return
				}
				over := rec.Conn(c)
				var both sync.WaitGroup
				both.Go(func() { _, _ = io.Copy(over, in); _ = over.CloseWrite() })
				both.Go(func() { _, _ = io.Copy(in, over); _ = in.(*net.TCPConn).CloseWrite() })
				both.Wait()
				_, _ = over.Close(), in.Close()
			})
		}
	})
	return l.Addr().String(), func() {
		t.Helper()
		require.NoError(t, l.Close())
		all.Wait()
		require.NoError(t, rec.Close())
		require.NoError(t, out.Close())
	}
}

// TestDecodeSecure: what client and server said in TLS, a stream and plain SOAP, is decoded from a
// capture of the connection with the keys that the server logged, or the client recorded.
func TestDecodeSecure(t *testing.T) {
	dir := t.TempDir()
	writeCertificates(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("SSLKEYLOGFILE", at("keys"))
	url, stop := serveHere(t, "--cert", at("server.pem"), "--key", at("server.key"))
	server, path, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	relay, end := recordedRelay(t, server, at("link.pcapng"))
	t.Setenv("SSLKEYLOGFILE", "")
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	through := "https://" + relay + "/" + path
	code, _, stderr := do(t, "stream", through, message, message, "--require-hhfr", "--cacert", at("ca.pem"),
		"--record", at("client.pcapng"), "--record-keys")
	require.Zero(t, code, stderr)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(shared.Read(t, at("ca.pem"))))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := client.Post(through, "text/xml", bytes.NewReader(shared.Read(t, message)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	client.CloseIdleConnections()
	stop()
	end()

	code, out, stderr := do(t, "decode", at("link.pcapng"), "--keylog", at("keys"), "-o", "jsonl")
	require.Zero(t, code, stderr)
	assert.ElementsMatch(t, []string{"request Inform", "reply Inform", "request Inform", "reply Inform",
		"request Inform", "reply Inform"}, informs(t, out))
	assert.Regexp(t, `\d decrypted; 1 stream, `, stderr)
	assert.NotContains(t, stderr, "without keys")

	code, out, stderr = do(t, "decode", at("link.pcapng"), "--keylog", at("client.pcapng"), "-o", "json")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, `"decrypted_connections":`)
	assert.Contains(t, stderr, "1 connection in TLS without keys: ", "that of the call, whose keys were not recorded")

	code, _, stderr = do(t, "decode", at("link.pcapng"))
	assert.Equal(t, exit.Failed, code)
	assert.Regexp(t, `connections in TLS without keys \(\d of them offering hhfr\): run one of the peers with `+
		`SSLKEYLOGFILE=FILE`, stderr)

	code, _, stderr = do(t, "decode", at("link.pcapng"), "--keylog", message)
	assert.Equal(t, exit.Malformed, code)
	assert.Contains(t, stderr, "no TLS key log")
}

// operationsIn are the kinds and operations of messages in JSON, one a line.
func operationsIn(t *testing.T, lines string) (list []string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var m struct{ Kind, Operation, Session string }
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if m.Operation != "" {
			list = append(list, m.Kind+" "+m.Operation)
		}
	}
	return list
}

// informs are the messages in JSON that have this operation.
func informs(t *testing.T, lines string) (list []string) {
	t.Helper()
	for _, one := range operationsIn(t, lines) {
		if strings.HasSuffix(one, " Inform") {
			list = append(list, one)
		}
	}
	return list
}
