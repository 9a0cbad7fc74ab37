package http1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
)

func TestFraming(t *testing.T) {
	req, rep := "POST / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		head, method string
		want         http1.Framing
		code         http1.Code
	}{
		{head: req, want: http1.Framing{Kind: http1.NoBody}},
		{head: req + "content-length: 5\r\n", want: http1.Framing{Kind: http1.Length, Length: 5}},
		{head: req + "Content-Length: 5, 5\r\n",
			want: http1.Framing{Kind: http1.Length, Length: 5, Doubts: []http1.Doubt{http1.RepeatedLength}}},
		{head: req + "Content-Length: 5\r\nContent-Length: 6\r\n", code: http1.Conflict},
		{head: req + "Content-Length: -1\r\n", code: http1.Malformed},
		{head: req + "Content-Length: +1\r\n", code: http1.Malformed},
		{head: req + "Content-Length: 0x1\r\n", code: http1.Malformed},
		{head: req + "Content-Length:\r\n", code: http1.Malformed},
		{head: req + "Content-Length: 18446744073709551615\r\n", code: http1.Malformed},
		{head: req + "Transfer-Encoding: Chunked\r\n", want: http1.Framing{Kind: http1.Chunked}},
		{head: req + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
			want: http1.Framing{Kind: http1.Chunked, Doubts: []http1.Doubt{http1.BothLengths}}},
		{head: req + "Transfer-Encoding: gzip, chunked\r\n",
			want: http1.Framing{Kind: http1.Chunked, Doubts: []http1.Doubt{http1.UnknownCoding}}},
		{head: req + "Transfer-Encoding: chunked, gzip\r\n", code: http1.Conflict},
		{head: req + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", code: http1.Conflict},
		{head: req + "Transfer-Encoding: xchunked\r\n", code: http1.Conflict},
		{head: "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
			want: http1.Framing{Kind: http1.Chunked, Doubts: []http1.Doubt{http1.OldVersion}}},
		{head: rep, want: http1.Framing{Kind: http1.UntilClose}},
		{head: rep + "Transfer-Encoding: gzip\r\n",
			want: http1.Framing{Kind: http1.UntilClose, Doubts: []http1.Doubt{http1.UnknownCoding}}},
		{head: rep + "Content-Length: 7\r\n", method: "HEAD", want: http1.Framing{Kind: http1.NoBody}},
		{head: rep + "Content-Length: 7\r\n", method: "CONNECT", want: http1.Framing{Kind: http1.Tunnel}},
		{head: "HTTP/1.1 204 No\r\nContent-Length: 7\r\n", want: http1.Framing{Kind: http1.NoBody}},
		{head: "HTTP/1.1 304 No\r\nContent-Length: 7\r\n", want: http1.Framing{Kind: http1.NoBody}},
		{head: "HTTP/1.1 100 Continue\r\n", want: http1.Framing{Kind: http1.NoBody}},
		{head: "HTTP/1.1 101 Go\r\n", want: http1.Framing{Kind: http1.Tunnel}},
	} {
		h, _, err := http1.ParseHead([]byte(tt.head+"\r\n"), 0)
		require.NoError(t, err, "%q", tt.head)
		var f http1.Framing
		if h.IsReply() {
			f, err = http1.ReplyFraming(&h, tt.method)
		} else {
			f, err = http1.RequestFraming(&h)
		}
		if tt.code != 0 {
			assert.ErrorIs(t, err, &http1.Error{Code: tt.code}, "%q", tt.head)
			continue
		}
		require.NoError(t, err, "%q", tt.head)
		assert.Equal(t, tt.want, f, "%q", tt.head)
	}
}

// bodies are chunked bodies; rest is what belongs to the next message.
var bodies = []struct {
	in, entity, trailer, rest string
	code                      http1.Code
}{
	{in: "5\r\nhello\r\n0\r\n\r\nGET", entity: "hello", trailer: "\r\n", rest: "GET"},
	{in: "05;a=\"b\"\r\nhello\r\n1 \r\n!\r\n000\r\nA: b\r\n c\r\n\r\n", entity: "hello!",
		trailer: "A: b\r\n c\r\n\r\n"},
	{in: "3\nabc\nA\n0123456789\n0\n\n", entity: "abc0123456789", trailer: "\n"},
	{in: "0\r\n\r\n", trailer: "\r\n"},
	{in: "\r\n", code: http1.Malformed},
	{in: "-1\r\n", code: http1.Malformed},
	{in: "0x5\r\n", code: http1.Malformed},
	{in: "5 5\r\n", code: http1.Malformed},
	{in: "10000000000000000\r\n", code: http1.TooLarge},
	{in: "2\r\nabc\r\n", entity: "ab", code: http1.Malformed},
	{in: "2\r\nab\r\r\n", entity: "ab", code: http1.Malformed},
}

// decode writes in to a body in steps of step bytes.
func decode(b *http1.Body, in []byte, step int) (entity []byte, rest int, err error) {
	at := 0
	for at < len(in) && !b.Done() {
		e, n, err := b.Write(in[at:min(at+step, len(in))])
		entity = append(entity, e...)
		at += n
		if err != nil {
			return entity, at, err
		}
	}
	return entity, at, nil
}

func TestChunkedInPiecesOfEverySize(t *testing.T) {
	for _, tt := range bodies {
		for step := 1; step <= len(tt.in); step++ {
			b := http1.NewBody(http1.Framing{Kind: http1.Chunked})
			b.Record()
			entity, at, err := decode(b, []byte(tt.in), step)
			assert.Equal(t, tt.entity, string(entity), "%q by %d", tt.in, step)
			if tt.code != 0 {
				assert.ErrorIs(t, err, &http1.Error{Code: tt.code}, "%q by %d", tt.in, step)
				assert.Equal(t, err, b.Close())
				continue
			}
			require.NoError(t, err, "%q by %d", tt.in, step)
			assert.True(t, b.Done())
			assert.NoError(t, b.Close())
			assert.Equal(t, tt.trailer, string(b.Trailer()))
			assert.Equal(t, tt.rest, tt.in[at:])
			parts, all := b.Framing()
			assert.True(t, all)
			assert.Equal(t, tt.in[:at], string(http1.AppendRaw(nil, entity, parts)))
		}
	}
}

func TestOtherBodies(t *testing.T) {
	b := http1.NewBody(http1.Framing{Kind: http1.Length, Length: 3})
	e, n, err := b.Write([]byte("ab"))
	require.NoError(t, err)
	assert.Equal(t, "ab", string(e))
	assert.Equal(t, 2, n)
	assert.Equal(t, int64(1), b.Left())
	assert.ErrorIs(t, b.Close(), http1.ErrIncomplete)
	e, n, _ = b.Write([]byte("cd"))
	assert.Equal(t, "c", string(e))
	assert.Equal(t, 1, n)
	assert.True(t, b.Done())

	b = http1.NewBody(http1.Framing{Kind: http1.UntilClose})
	e, _, _ = b.Write([]byte("xyz"))
	assert.Equal(t, "xyz", string(e))
	assert.False(t, b.Done())
	assert.NoError(t, b.Close())
	assert.True(t, b.Done())

	for _, k := range []http1.Kind{http1.NoBody, http1.Tunnel, http1.Length} {
		assert.True(t, http1.NewBody(http1.Framing{Kind: k}).Done(), k)
	}
}

func TestAppendChunk(t *testing.T) {
	raw := http1.AppendLastChunk(http1.AppendChunk(http1.AppendChunk(nil, nil), []byte("sixteen octets!!")))
	assert.Equal(t, "10\r\nsixteen octets!!\r\n0\r\n\r\n", string(raw))
}

func TestBodyBoundsWhatItKeeps(t *testing.T) {
	for _, in := range []string{"5;", "0\r\na: "} {
		b := http1.NewBody(http1.Framing{Kind: http1.Chunked})
		_, _, err := b.Write([]byte(in))
		require.NoError(t, err)
		for range 1000 {
			if _, _, err = b.Write(make([]byte, 1000)); err != nil {
				break
			}
		}
		assert.ErrorIs(t, err, &http1.Error{Code: http1.TooLarge}, "%q", in)
	}
	b := http1.NewBody(http1.Framing{Kind: http1.Chunked})
	b.Record()
	for range 300000 {
		_, _, err := decode(b, []byte("1\r\na\r\n"), 6)
		require.NoError(t, err)
	}
	parts, all := b.Framing()
	assert.False(t, all)
	assert.Empty(t, parts)
}

// TestRechunkerHoldsOneChunk: a long body is framed anew as it comes.
func TestRechunkerHoldsOneChunk(t *testing.T) {
	c, err := http1.ParseChunking([]byte("=C:10*1000 7\n"))
	require.NoError(t, err)
	r := c.Rechunk()
	var raw []byte
	for range 10_000 / 4 {
		raw = r.Append(raw, []byte("abcd"))
		require.Less(t, r.Held(), 10)
	}
	assert.Equal(t, 1000*len("A\r\nabcdabcdab\r\n"), len(raw))
	raw = r.Append(raw[:0], []byte("0123456789"))
	assert.Equal(t, "7\r\n0123456\r\n", string(raw))
	assert.Equal(t, 3, r.Held())
	assert.Equal(t, "3\r\n789\r\n0\r\n\r\n", string(r.End(nil)))
}
