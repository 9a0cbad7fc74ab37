package tlsrecord_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// output is what a program prints.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// talkOfOpenSSL has a client of OpenSSL say lines to its server, which says each of them backwards,
// and returns what went over the connection, and its key log.
func talkOfOpenSSL(t *testing.T, server, client []string, lines ...string) (events []event, keys []byte) {
	t.Helper()
	openssl := shared.Program(t, "openssl")
	dir := t.TempDir()
	ca := shared.NewAuthority(t)
	cert, key := shared.WriteCertificate(t, dir, "server", ca.Issue(time.Hour, "127.0.0.1"))
	port := shared.Addr(t)
	s := exec.CommandContext(t.Context(), openssl, append([]string{"s_server", "-accept", port, "-cert", cert,
		"-key", key, "-rev"}, server...)...)
	said := new(output)
	s.Stdout, s.Stderr = said, said
	idle, err := s.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start())
	defer func() {
		_ = idle.Close()
		_ = s.Process.Kill()
		_ = s.Wait()
	}()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "ACCEPT") }, time.Minute,
		10*time.Millisecond, said)

	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	tap := new(tapped)
	var relay sync.WaitGroup
	relay.Go(func() {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := new(net.Dialer).DialContext(t.Context(), "tcp", port)
		if !assert.NoError(t, err) {
			return
		}
		tap.Conn = out
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(struct{ io.Writer }{tap}, in); _ = out.Close() })
		both.Go(func() { _, _ = io.Copy(in, struct{ io.Reader }{tap}); _ = in.Close() })
		both.Wait()
	})
	log := filepath.Join(dir, "keys")
	c := exec.CommandContext(t.Context(), openssl, append([]string{"s_client", "-connect", l.Addr().String(),
		"-keylogfile", log}, client...)...)
	heard := new(output)
	c.Stdout, c.Stderr = heard, heard
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool { return strings.Contains(heard.String(), "Verify return code") }, time.Minute,
		10*time.Millisecond, heard)
	for _, line := range lines {
		_, err := io.WriteString(in, line+"\n")
		require.NoError(t, err)
		shows := backwards(line)
		if len(line) == 1 { // a command
			shows = "KEYUPDATE"
		}
		require.Eventually(t, func() bool { return strings.Contains(heard.String(), shows) }, time.Minute,
			10*time.Millisecond, "%s\n%s", heard, said)
	}
	require.NoError(t, in.Close())
	_ = c.Wait()
	relay.Wait()
	_ = l.Close()
	keys, err = os.ReadFile(log)
	require.NoError(t, err)
	return tap.events, keys
}

func backwards(line string) string {
	var b strings.Builder
	for i := len(line) - 1; i >= 0; i-- {
		b.WriteByte(line[i])
	}
	return b.String()
}

// TestOpenSSL: what OpenSSL says, in suites that this library does not choose or does not have, and
// with keys that change, is decrypted.
func TestOpenSSL(t *testing.T) {
	lines := []string{"the first line", strings.Repeat("a longer line. ", 500), "the last line"}
	for name, tc := range map[string]struct {
		server, client []string
		update         string
	}{
		"1.3 AES-128":        {client: []string{"-ciphersuites", "TLS_AES_128_GCM_SHA256"}},
		"1.3 AES-256":        {client: []string{"-ciphersuites", "TLS_AES_256_GCM_SHA384"}},
		"1.3 ChaCha20":       {client: []string{"-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"}},
		"1.3 update":         {update: "k"},
		"1.3 update of both": {update: "K"},
		"1.3 padded": {
			server: []string{"-record_padding", "64"}, client: []string{"-record_padding", "512"},
		},
		"1.3 asked again":       {server: []string{"-groups", "P-384"}, client: []string{"-groups", "X25519:P-384"}},
		"1.2 AES-128-GCM":       {client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"}},
		"1.2 AES-256-GCM":       {client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"}},
		"1.2 ChaCha20":          {client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"}},
		"1.2 AES-128-CBC":       {client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"}},
		"1.2 AES-256-CBC":       {client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384"}},
		"1.2 AES-256-CBC SHA-1": {client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA"}},
		"1.2 CBC, MAC first": {
			server: []string{"-no_etm"}, client: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			say := lines
			if tc.update != "" {
				say = []string{lines[0], tc.update, lines[1], lines[2]}
			}
			events, keys := talkOfOpenSSL(t, tc.server, tc.client, say...)
			f := follow(t, logOf(keys), events, nil)
			assert.Zero(t, f.Why())
			var back []string
			for _, line := range lines {
				back = append(back, backwards(line))
			}
			assert.Equal(t, strings.Join(lines, "\n")+"\n", f.said(0))
			assert.Equal(t, strings.Join(back, "\n")+"\n", f.said(1), fmt.Sprint(tc.client))
		})
	}
}
