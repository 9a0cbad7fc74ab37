package streamer

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/frame"
)

// Hellos are kept as they were said, those that say the same once.
func TestKeptHellos(t *testing.T) {
	plain := frame.Hello{Responder: true, Proxy: true, Session: [16]byte{1}, Word: [8]byte{2}, Representation: 1,
		Stages: 3, Limits: frame.Limits{MaxFragment: 4, MaxMessage: 5, Window: 6}, Lifetime: 7}
	other := plain
	other.Session, other.Word = [16]byte{8}, [8]byte{9}
	a, b := keepHello(plain), keepHello(other)
	assert.Same(t, a.Hello, b.Hello)
	assert.Equal(t, plain, a.whole())
	assert.Equal(t, other, b.whole())
	for _, change := range []func(*frame.Hello){
		func(h *frame.Hello) { h.Responder = false },
		func(h *frame.Hello) { h.Limits.MaxHeld = 1 },
		func(h *frame.Hello) { h.Token = []byte("sixteen bytes of") },
		func(h *frame.Hello) { h.Description = []byte("of eight") },
		func(h *frame.Hello) { h.Target = "http://service/" },
	} {
		h := plain
		change(&h)
		c := keepHello(h)
		assert.Equal(t, h, c.whole())
		assert.NotSame(t, a.Hello, c.Hello)
	}
	assert.Equal(t, plain, a.whole())
}
