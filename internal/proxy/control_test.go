package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/proxy"
)

// framings are raw chunked bodies, and the line that carries their framing.
var framings = []struct{ raw, line string }{
	{"0\r\n\r\n", "=c:\n"},
	{"5\r\nhello\r\n0\r\n\r\n", "=c:\n"},
	{"a\r\n0123456789\r\n0\r\n\r\n", "=c:\n"},
	{"A\r\n0123456789\r\n0\r\n\r\n", "=C:\n"},
	{"2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n", "=c:2*2\n"},
	{"2\r\nab\r\n1\r\ne\r\n2\r\ncd\r\n0\r\n\r\n", "=c:2 1\n"},
	{"2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", "=c:2\n"},
	{"02\r\nab\r\n0\r\n\r\n", ""},
	{"2;x=y\r\nab\r\n0\r\n\r\n", ""},
	{"2\nab\n0\n\n", ""},
	{"2\r\nab\r\n0\r\nTrailer: 1\r\n\r\n", ""},
	{"2\r\nab\r\n000;last\r\n\r\n", ""},
}

func TestFramingIsBroughtOver(t *testing.T) {
	for _, tt := range framings {
		back, line, ok := proxy.Reframe([]byte(tt.raw))
		require.True(t, ok, "%q", tt.raw)
		assert.Equal(t, tt.raw, string(back))
		if tt.line != "" {
			assert.Equal(t, tt.line, string(line), "%q", tt.raw)
		} else {
			assert.True(t, strings.HasPrefix(string(line), "=f:"), "%q", line)
		}
	}
	many := strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 20) + "3\r\nend\r\n0\r\n\r\n"
	back, line, ok := proxy.Reframe([]byte(many))
	require.True(t, ok)
	assert.Equal(t, many, string(back))
	assert.Equal(t, "=c:4096*20\n", string(line))
}

// parts are hostile head parts.
var parts = []string{
	"=", "=p", "=p\n", "=q\n", "=e:1\n", "=e:x\n", "=e:99999999999999999999\n", "=b\n\n", "=b\n=c:1\n", "=b\n", "=b\nx",
	"=c:1\n",
	"POST / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\n\n", "POST / HTTP/1.1\r\n\r\n=h\n", "POST / HTTP/1.1\r\n\r\n=h",
	"HTTP/1.1 200 OK\r\n\r\n=u\n", "HTTP/1.1 200 OK\r\n\r\n=u:20", "HTTP/1.1 200 OK\r\n\r\n=u:0\n",
	"HTTP/1.1 200 OK\r\n\r\n=u:20\n",
	"POST / HTTP/1.1\r\n\r\n=c:1*99999999999\n", "POST / HTTP/1.1\r\n\r\n=c:0\n", "POST / HTTP/1.1\r\n\r\n=c:-1\n",
	"POST / HTTP/1.1\r\n\r\n=c:1*1000000 1*1000000\n",
	"POST / HTTP/1.1\r\n\r\n=f:AAAA\n", "POST / HTTP/1.1\r\n\r\n=f://///////8\n", "POST / HTTP/1.1\r\n\r\n=f:!\n",
	"POST / HTTP/1.1\r\n\r\n=g:1\n",
	"=t\n", "=t", "=t:1\n", "=z\n", "=r\n", "POST / HTTP/1.1\r\n\r\n=r\n", "POST / HTTP/1.1\r\n\r\n=r",
	"HTTP/1.1 200 OK\r\n\r\n=r\n=r\n",
}

func TestHostileHeadParts(t *testing.T) {
	for _, part := range parts {
		if strings.HasSuffix(part, "*99999999999\n") || strings.Contains(part, ":-1") ||
			strings.HasSuffix(part, "=g:1\n") ||
			strings.HasSuffix(part, "=u:20") || strings.HasSuffix(part, "=u:0\n") || strings.HasSuffix(part, "=h\n") ||
			part == "=q\n" || part == "=p\n" || part == "=b\n" {
			_, err := proxy.ReadHeadPart([]byte(part), []byte("entity"))
			assert.ErrorIs(t, err, &proxy.Error{Code: proxy.Malformed}, "%q", part)
		}
	}
}

// TestEndOfAConnectionInOneByte: the end of a connection, after which another one of the same
// client comes, is a line or one byte.
func TestEndOfAConnectionInOneByte(t *testing.T) {
	for _, part := range []string{"=h\n", "="} {
		_, err := proxy.ReadHeadPart([]byte(part), nil)
		assert.NoError(t, err, "%q", part)
		assert.Equal(t, "connection end", proxy.Control([]byte(part)), "%q", part)
	}
}

func FuzzFraming(f *testing.F) {
	for _, tt := range framings {
		f.Add([]byte(tt.raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		back, line, ok := proxy.Reframe(raw)
		if ok && string(back) != string(raw) {
			t.Fatalf("%q came back as %q by %q", raw, back, line)
		}
	})
}

func FuzzHeadPart(f *testing.F) {
	for _, part := range parts {
		f.Add([]byte(part), []byte("entity"))
	}
	f.Fuzz(func(t *testing.T, part, entity []byte) {
		n, err := proxy.ReadHeadPart(part, entity)
		// A chunk adds what its size and line ends take, and has at least one byte; other framing
		// is in the part itself.
		if limit := 12*len(entity) + len(part) + 16; err == nil && n > limit {
			t.Fatalf("%d bytes of %d and %d", n, len(part), len(entity))
		}
		if err != nil && fmt.Sprint(err) == "" {
			t.Fatal("error without a text")
		}
	})
}
