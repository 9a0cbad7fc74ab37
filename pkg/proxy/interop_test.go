//go:build interop

package proxy_test

import (
	"bytes"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropCurlThroughPair: curl posts each message of the corpus to a server, with the pair between and without. Both get the same octets.
func TestInteropCurlThroughPair(t *testing.T) {
	curl, err := exec.LookPath("curl")
	require.NoError(t, err)
	post := func(to *url.URL, args ...string) string {
		var out bytes.Buffer
		c := exec.CommandContext(t.Context(), curl, append([]string{"-s", "-S", "-i", "--connect-to", "service.example:80:" + to.Host, "http://service.example/service?q=1"}, args...)...)
		c.Stdout = &out
		require.NoError(t, c.Run())
		return out.String()
	}
	direct := startOrigin(t, "127.0.0.1:0", server(echoReply))
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	near, _ := pair(t, o.url(), nil)
	for i, path := range shared.Messages(t) {
		args := []string{"--data-binary", "@" + path, "-H", "Content-Type: text/xml; charset=utf-8", "-H", `SOAPAction: "urn:x"`}
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
