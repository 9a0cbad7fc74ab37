package streamer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// broken is a body that ends in the middle, after a while.
type broken struct{ from io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if errors.Is(err, io.EOF) {
		time.Sleep(time.Second)
		err = errors.New("broken")
	}
	return n, err
}

// stalling is a connection that takes nothing while it is stalled.
type stalling struct {
	net.Conn
	stalled atomic.Pointer[context.Context]
}

func (c *stalling) Write(p []byte) (int, error) {
	if ctx := c.stalled.Load(); ctx != nil {
		<-(*ctx).Done()
	}
	return c.Conn.Write(p)
}

// An interim reply that is given up, too long, not read, or that takes too long to be written,
// changes nothing of the reply that counts.
func TestInterimRepliesThatFail(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 8192)
	for name, tc := range map[string]struct {
		interim func(context.Context, *streamer.Exchange) error
		code    streamer.Code // 0: none
		stalls  bool
	}{
		"given up": {func(ctx context.Context, x *streamer.Exchange) error {
			return x.Interim(ctx, &streamer.Message{Body: broken{strings.NewReader(long[:60_000])}})
		}, streamer.Aborted, false},
		"longer than a window": {func(ctx context.Context, x *streamer.Exchange) error {
			return x.Interim(ctx, &streamer.Message{Body: strings.NewReader(long + long + long)})
		}, streamer.TooLarge, false},
		"longer than is passed over": {func(ctx context.Context, x *streamer.Exchange) error {
			return x.Interim(ctx, &streamer.Message{Body: strings.NewReader(long)})
		}, 0, false},
		"not written in time": {func(ctx context.Context, x *streamer.Exchange) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return x.Interim(ctx, &streamer.Message{Body: strings.NewReader(long[:40_000])})
		}, streamer.Aborted, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := make(chan error, 1)
				here, there := inproc.Pipe(0)
				slow := &stalling{Conn: there}
				p := connectOver(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
					if tc.stalls {
						minute, cancel := context.WithTimeout(context.Background(), time.Minute)
						defer cancel()
						slow.stalled.Store(&minute)
					}
					failed <- tc.interim(ctx, x)
					assert.NoError(t, x.Reply(ctx, &streamer.Message{Body: strings.NewReader(long + long + long)}))
				}}, here, slow)
				r, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
				require.NoError(t, err)
				assert.Equal(t, long+long+long, body(t, r))
				if err := <-failed; tc.code == 0 {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, &streamer.Error{Code: tc.code}, fmt.Sprint(err))
				}
				end(t, p)
			})
		})
	}
}

// Interim replies that nobody takes have a window of content together, and one.
func TestInterimRepliesThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := make(chan int, 1)
		p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
			n := 0
			for x.Interim(ctx, streamer.NewMessage(nil, make([]byte, 60_000))) == nil {
				n++
				time.Sleep(time.Second)
			}
			sent <- n
		}})
		call, err := p.a.Lane(1).Begin(t.Context(), streamer.NewMessage(nil, []byte("x")))
		require.NoError(t, err)
		assert.Less(t, <-sent, 8)
		_, err = call.Reply(t.Context())
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.FateUnknown})
		end(t, p)
	})
}
