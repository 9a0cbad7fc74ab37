//go:build interop

package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// malformed are bodies that are no message, or no longer one, beside those in the corpus; curl
// posts them from files.
func malformed(t *testing.T, messages []string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, octets []byte) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, octets, 0o600))
		paths = append(paths, path)
	}
	write("empty", nil)
	write("zeros", make([]byte, 3000))
	write("lines", []byte("\r\n\r\n\n\r"))
	write("start", []byte("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"))
	write("long", bytes.Repeat([]byte("<a><b>\xff\x00</a>"), 200_000))
	for i, path := range messages {
		octets := bytes.Clone(shared.Read(t, path))
		switch at := len(octets) * (i % 7) / 7; i % 3 {
		case 0: // cut
			octets = octets[:at]
		case 1: // not UTF-8
			octets = append(octets[:at:at], append([]byte{0xff, 0xfe, 0x00}, octets[at:]...)...)
		case 2: // doubled, one inside the other
			octets = append(octets[:at:at], append(octets, octets[at:]...)...)
		}
		write(fmt.Sprint("changed-", i), octets)
	}
	return paths
}

// TestInteropCurlThroughPair: curl posts each message of the corpus, and malformed ones, to a
// server, with and without the pair between. Both get the same bytes.
func TestInteropCurlThroughPair(t *testing.T) {
	curl := shared.Program(t, "curl")
	post := func(to *url.URL, args ...string) string {
		var out bytes.Buffer
		c := exec.CommandContext(t.Context(), curl,
			append([]string{"-s", "-S", "-i", "--connect-to", "service.example:80:" + to.Host,
				"http://service.example/service?q=1"}, args...)...)
		c.Stdout = &out
		require.NoError(t, c.Run())
		return out.String()
	}
	direct := startOrigin(t, "127.0.0.1:0", server(echoReply))
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	near, _ := pair(t, o.url(), nil)
	messages := shared.SomeMessages(t)
	for i, path := range append(messages, malformed(t, messages)...) {
		args := []string{"--data-binary", "@" + path, "-H", "Content-Type: text/xml; charset=utf-8", "-H",
			`SOAPAction: "urn:x"`}
		switch i % 4 {
		case 1:
			args = append(args, "-H", "Transfer-Encoding: chunked")
		case 2:
			args = append(args, "-0")
		case 3:
			args = append(args, "-H", "x-lower: 1", "-H", "X-UPPER: 2", "-H", "x-lower: 3", "-H", "Connection: close")
		}
		assert.True(t, post(direct.url(), args...) == post(near.url(), args...), "%s: curl got something else", path)
	}
	a, b := direct.received(), o.received()
	require.Equal(t, len(a), len(b))
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("the server received something else: %.200q and %.200q", a[i], b[i])
		}
	}
	assert.True(t, strings.HasPrefix(a[0], "POST /service?q=1 HTTP/1.1\r\nHost: service.example\r\n"))
}

// TestInteropCurlOfAnEventStream: curl -N through a pair receives each event before the server
// writes the next.
func TestInteropCurlOfAnEventStream(t *testing.T) {
	curl := shared.Program(t, "curl")
	next := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL + "/service")
	require.NoError(t, err)
	near, _ := pair(t, u, nil)
	c := exec.CommandContext(t.Context(), curl, "-N", "-s", "-S", near.url().String())
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	r := bufio.NewReader(out)
	for i := range 3 {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		_, err = r.ReadString('\n')
		require.NoError(t, err)
		next <- struct{}{}
	}
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Empty(t, rest)
	require.NoError(t, c.Wait())
}
