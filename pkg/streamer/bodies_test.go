package streamer_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// flipped reads other bytes than there are.
type flipped struct{ io.Reader }

func (f flipped) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	for i := range p[:n] {
		p[i] ^= 0x20
	}
	return n, err
}

func (f flipped) Close() error { return f.Reader.(io.Closer).Close() }

// flips writes others than it is given.
type flips struct{ to io.Writer }

func (f flips) Write(p []byte) (int, error) {
	other := bytes.Clone(p)
	for i := range other {
		other[i] ^= 0x20
	}
	return f.to.Write(other)
}

func (f flips) Close() error { return nil }

func flipping(c streamer.Config) streamer.Config {
	c.Outgoing = func(to io.Writer) io.WriteCloser { return flips{to} }
	c.Incoming = func(b io.ReadCloser) io.ReadCloser { return flipped{b} }
	return c
}

// What travels of a body is what Outgoing makes of it; heads travel as they are.
func TestBodiesTravelInAnotherForm(t *testing.T) {
	h := meetByHand(t, flipping(streamer.Config{}), newRawCoder(), func(ctx context.Context, x *streamer.Exchange) {
		got, err := x.Message().ReadAll(100)
		assert.NoError(t, err)
		assert.Equal(t, "HELLO", string(got))
		assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, []byte("Reply"))))
	})
	h.write(request("\x00hello"))
	d := until[frame.Data](h)
	assert.True(t, bytes.HasSuffix(d.Payload, []byte("rEPLY")), "%q", d.Payload)
}

// Every kind of message, of either end, in order or not, comes as it was sent; so do bodies that
// are long, come in pieces, or are not there.
func TestBodiesComeBack(t *testing.T) {
	try := func(t *testing.T, p *pair) {
		for _, want := range []string{"", "x", "hello", strings.Repeat("long ", 100_000)} {
			for _, s := range []*streamer.Stream{p.a, p.b} {
				r, err := s.Lane(0).Call(t.Context(), streamer.NewMessage([]byte("Head"), []byte(want)))
				require.NoError(t, err)
				assert.Equal(t, "Head", string(r.Head))
				assert.Equal(t, want, body(t, r))
				inPieces := &streamer.Message{Body: iotest.HalfReader(strings.NewReader(want))}
				pending, err := s.Lane(1).Open(t.Context(), inPieces)
				require.NoError(t, err)
				r, err = pending.Reply(t.Context())
				require.NoError(t, err)
				assert.Equal(t, want, body(t, r))
			}
		}
		r, err := p.a.Lane(0).Call(t.Context(), &streamer.Message{Head: []byte("h")})
		require.NoError(t, err)
		assert.Empty(t, body(t, r))
	}
	var mu sync.Mutex
	var once []string
	echoOnce := func(ctx context.Context, x *streamer.Exchange) {
		if !x.OneWay() {
			echo(ctx, x)
			return
		}
		b, err := x.Message().ReadAll(1 << 20)
		assert.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		once = append(once, string(b))
	}
	both := flipping(streamer.Config{})
	p := connect(t, pairing{a: both, b: both, handlera: echoOnce, handlerb: echoOnce})
	try(t, p)
	require.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("one way"))))
	require.NoError(t, p.a.Close())
	require.NoError(t, p.b.Close())
	assert.Equal(t, []string{"one way"}, once)
}
