package streamer_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestKnownLength(t *testing.T) {
	for name, c := range map[string]struct {
		m    streamer.Message
		want int64
	}{
		"none":      {streamer.Message{}, 0},
		"in memory": {streamer.Message{Body: strings.NewReader("abc")}, 3},
		"stated":    {streamer.Message{Body: io.MultiReader(strings.NewReader("abc")), Length: 3}, 3},
		"not known": {streamer.Message{Body: io.MultiReader(strings.NewReader("abc"))}, -1},
	} {
		assert.Equal(t, c.want, c.m.KnownLength(), name)
	}
}

// The length of a body that came is known once all of it is here, and it reads the same then.
func TestKnownLengthOfWhatCame(t *testing.T) {
	for _, size := range []int{0, 1, 10_000, 100_000, 200_000} {
		content := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for _, known := range []bool{true, false} {
			p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
				m := x.Message()
				for n := int64(-1); known && n < 0; {
					if n = m.KnownLength(); n >= 0 {
						assert.EqualValues(t, size, n)
					} else {
						runtime.Gosched()
					}
				}
				assert.NoError(t, x.Reply(ctx, m))
			}})
			for range 2 {
				reply, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, content))
				require.NoError(t, err)
				assert.Equal(t, string(content), body(t, reply))
			}
		}
	}
}

// A body of which a part is missing has no known length, nor one that is too long to be joined.
func TestUnknownLengthOfWhatCame(t *testing.T) {
	from, to := io.Pipe()
	asked := make(chan struct{})
	p := connect(t, pairing{
		b: streamer.Config{Limits: streamer.Limits{Window: 4 << 20}},
		handlerb: func(ctx context.Context, x *streamer.Exchange) {
			assert.EqualValues(t, -1, x.Message().KnownLength())
			asked <- struct{}{}
			assert.NoError(t, x.Reply(ctx, x.Message()))
		},
	})
	go func() {
		_, _ = io.WriteString(to, "abc")
		<-asked
		_, _ = io.WriteString(to, "def")
		_ = to.Close()
	}()
	reply, err := p.a.Lane(0).Call(t.Context(), &streamer.Message{Body: from})
	require.NoError(t, err)
	assert.Equal(t, "abcdef", body(t, reply))
	long := strings.Repeat("x", 3<<20)
	go func() { <-asked }()
	reply, err = p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(long)))
	require.NoError(t, err)
	assert.Equal(t, len(long), len(body(t, reply)))
}
