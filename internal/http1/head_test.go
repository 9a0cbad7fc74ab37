package http1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
)

// heads serve the parse test and seed the fuzz target.
var heads = []struct {
	in     string
	start  [3]string
	fields []string // name, value, name, value …
	doubts []http1.Doubt
}{
	{in: "POST /a HTTP/1.1\r\nHost: x\r\nSOAPAction: \"\"\r\n\r\n", start: [3]string{"POST", "/a", "HTTP/1.1"},
		fields: []string{"Host", "x", "SOAPAction", `""`}},
	{in: "HTTP/1.1 200 OK\r\nsid:  a b \t\r\nSID:\r\n\r\n", start: [3]string{"HTTP/1.1", "200", "OK"},
		fields: []string{"sid", "a b", "SID", ""}},
	{in: "HTTP/1.0 404\r\n\r\n", start: [3]string{"HTTP/1.0", "404", ""}},
	{in: "HTTP/1.1 500 \r\n\r\n", start: [3]string{"HTTP/1.1", "500", ""}},
	{in: "\r\n\nGET * HTTP/1.1\n\n", start: [3]string{"GET", "*", "HTTP/1.1"}, doubts: []http1.Doubt{http1.BareLF}},
	{in: "GET /a b HTTP/1.1\r\nX: 1\r\n 2\r\n\t3\r\nY : z\r\n\r\n", start: [3]string{"GET", "/a b", "HTTP/1.1"},
		fields: []string{"X", "1 2 3", "Y", "z"},
		doubts: []http1.Doubt{http1.SpaceBeforeColon, http1.Fold}},
	{in: "M-SEARCH * HTTP/1.1\r\nA\x80B: \x00\r\n\r\n", start: [3]string{"M-SEARCH", "*", "HTTP/1.1"},
		fields: []string{"A\x80B", "\x00"},
		doubts: []http1.Doubt{http1.OddName, http1.ControlOctet}},
}

func TestParseHeadKeepsEveryOctet(t *testing.T) {
	for _, tt := range heads {
		in := []byte(tt.in + "<body/>")
		h, n, err := http1.ParseHead(in, 0)
		require.NoError(t, err, "%q", tt.in)
		assert.Equal(t, len(tt.in), n)
		assert.Equal(t, tt.in, string(h.Octets))
		if h.IsReply() {
			assert.Equal(t, tt.start, [3]string{string(h.Version()),
				string(h.Octets[len(h.Before())+9 : len(h.Before())+12]), string(h.Reason())})
			assert.Nil(t, h.Method())
		} else {
			assert.Equal(t, tt.start, [3]string{string(h.Method()), string(h.Target()), string(h.Version())})
			assert.Zero(t, h.Status())
		}
		var fields []string
		for _, f := range h.Fields() {
			fields = append(fields, string(f.Name), string(f.Unfolded()))
		}
		assert.Equal(t, tt.fields, fields, "%q", tt.in)
		f, err := http1.RequestFraming(&h)
		require.NoError(t, err)
		assert.Equal(t, tt.doubts, f.Doubts, "%q", tt.in)
		assert.Equal(t, tt.in, string(http1.AppendEdited(nil, &h, nil, nil)))
		for cut := range len(tt.in) {
			_, _, err := http1.ParseHead(in[:cut], 0)
			assert.ErrorIs(t, err, http1.ErrIncomplete, "%q cut at %d", tt.in, cut)
		}
	}
}

func TestGetIsBlindToCaseAndKeepsOrder(t *testing.T) {
	h, _, err := http1.ParseHead([]byte("GET / HTTP/1.1\r\nvia: a, B;q=1\r\nHost: h\r\nVIA: , c\r\n\r\n"), 0)
	require.NoError(t, err)
	v, ok := h.Get("Via")
	assert.True(t, ok)
	assert.Equal(t, "a, B;q=1", string(v))
	assert.Len(t, h.All("vIa"), 2)
	assert.Equal(t, []string{"a", "b", "c"}, h.Tokens("Via"))
	_, ok = h.Get("Date")
	assert.False(t, ok)
	out := http1.AppendEdited(nil, &h, func(f http1.FieldLine) bool { return f.Is("via") }, []byte("X: y\r\n"))
	assert.Equal(t, "GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n", string(out))
}

func TestParseHeadRefuses(t *testing.T) {
	for in, code := range map[string]http1.Code{
		"\x16\x03\x01\x00\n\n":               http1.Malformed,
		"GET /\r\n\r\n":                      http1.Malformed,
		"GET / HTTP/2.0\r\n\r\n":             http1.Malformed,
		"HTTP/1.1 20 OK\r\n\r\n":             http1.Malformed,
		"HTTP/1.1 2000 OK\r\n\r\n":           http1.Malformed,
		"GET / HTTP/1.1\r\n fold\r\n\r\n":    http1.Malformed,
		"GET / HTTP/1.1\r\nno colon\r\n\r\n": http1.Malformed,
		"GET / HTTP/1.1\r\n: x\r\n\r\n":      http1.Malformed,
		"GET / HTTP/1.1\r\n" + strings.Repeat("a: b\r\n", 2000) + "\r\n": http1.TooLarge,
		"GET / HTTP/1.1\r\nA: " + strings.Repeat("b", 70000):             http1.TooLarge,
		strings.Repeat("\n", 70000):                                      http1.TooLarge,
	} {
		_, _, err := http1.ParseHead([]byte(in), 0)
		assert.ErrorIs(t, err, &http1.Error{Code: code}, "%.40q", in)
	}
}

func TestAppendNeverBendsAndNeverBreaks(t *testing.T) {
	b, err := http1.AppendRequestLine(nil, "POST", "/a?b", "HTTP/1.1")
	require.NoError(t, err)
	b, err = http1.AppendField(b, "sOAPaction", `"u"`)
	require.NoError(t, err)
	assert.Equal(t, "POST /a?b HTTP/1.1\r\nsOAPaction: \"u\"\r\n\r\n", string(http1.AppendEnd(b)))
	b, err = http1.AppendStatusLine(nil, "HTTP/1.1", 202, "")
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 202 \r\n", string(b))
	for _, bad := range []func() ([]byte, error){
		func() ([]byte, error) { return http1.AppendField(nil, "a b", "c") },
		func() ([]byte, error) { return http1.AppendField(nil, "a", "c\r\nd: e") },
		func() ([]byte, error) { return http1.AppendRequestLine(nil, "GET", "/ HTTP/1.1\r\nX: ", "HTTP/1.1") },
		func() ([]byte, error) { return http1.AppendRequestLine(nil, "GET", "/a b", "HTTP/1.1") },
		func() ([]byte, error) { return http1.AppendRequestLine(nil, "GET", "", "HTTP/1.1") },
		func() ([]byte, error) { return http1.AppendStatusLine(nil, "HTTP/1.1", 20, "") },
		func() ([]byte, error) { return http1.AppendStatusLine(nil, "HTTP/1.1", 200, "a\nb") },
	} {
		b, err := bad()
		assert.ErrorIs(t, err, &http1.Error{Code: http1.Invalid})
		assert.Empty(t, b)
	}
}

func TestMayBeRequest(t *testing.T) {
	for in, want := range map[string]bool{
		"": true, "\r\n": true, "P": true, "POST": true, "POST ": true, "CONNECT example": true,
		"GET\t/ HTTP/1.1\n":  true,
		"GET / HTTP/1.1\r\n": true, "GET / HTTP/2.0\n": true, "PRI * HTTP/2.0\r\n\r\nSM": true,
		"GET /" + strings.Repeat("a", 9000): true, "GET /\r\n": false, "HELO me\r\n": false, "P\x01": false,
		strings.Repeat("A", 25): false, "HTTP/1.1 200 OK\r\n": false,
		" GET / HTTP/1.1\r\n": false, "\x16\x03\x01": false,
	} {
		assert.Equal(t, want, http1.MayBeRequest([]byte(in)), "%q", in)
	}
}

func TestLooksLikeStart(t *testing.T) {
	for in, want := range map[string]bool{
		"GET / HTTP/1.1\r\n": true, "POST /x": true, "HTTP/1.1 200": true, "HTTP/1.1 2": true,
		"\r\nGET / HTTP/1.0\n": true,
		"":                     false, "GET": false, "\x16\x03\x01": false, "<a b='c'>": false, "HTTP/1.1": false,
		"GET /x y\r\n":  false,
		"SSH-2.0-x\r\n": false,
		"CONNECT a:1":   true,
	} {
		assert.Equal(t, want, http1.LooksLikeStart([]byte(in)), "%q", in)
	}
}
