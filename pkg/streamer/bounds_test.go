package streamer_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/inproc"
)

// A sync frame must have room for all open messages: so only so many are begun.
func TestMessagesBegunAndNotWholeAreBounded(t *testing.T) {
	const n, most = 600, 512 - 64 // the rest is kept for replies
	var mu sync.Mutex
	open, peak, whole := 0, 0, 0
	release := make(chan struct{})
	full := sync.OnceFunc(func() { close(release) })
	events := func(ev streamer.Event) {
		if ev.Dir != streamer.Sent || ev.Kind != frame.KindData {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if ev.First {
			open++
		}
		if ev.Last {
			open--
			whole++
		}
		if peak = max(peak, open); peak == most {
			full()
		}
	}
	p := connect(t, pairing{a: streamer.Config{QueueBytes: 64 << 20, Events: events}, b: streamer.Config{Limits: streamer.Limits{MaxExchanges: n}}, handlerb: echo})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			body := io.MultiReader(strings.NewReader(strings.Repeat("x", 40000)), gate(release))
			assert.NoError(t, p.a.Lane(0).Send(t.Context(), &streamer.Message{Body: body}))
		})
	}
	wg.Wait()
	require.NoError(t, p.a.Close())
	require.NoError(t, p.b.Close())
	assert.Equal(t, n, whole)
	assert.Equal(t, most, peak)
}

// gate is a reader that ends when it is closed.
type gate chan struct{}

func (g gate) Read([]byte) (int, error) {
	<-g
	return 0, io.EOF
}

// An end that has more refused than it may send, and reads nothing of it, does not fill our memory.
func TestCancelsThatNobodyReadsAreBounded(t *testing.T) {
	here, there := inproc.Pipe(2000)
	go func() {
		d := newDirection(t)
		var b []byte
		write := func(f frame.Frame) bool {
			b = d.fill(f).AppendTo(b[:0])
			_, err := here.Write(b)
			return err == nil
		}
		if _, err := here.Write(handHello.AppendTo(nil)); err != nil {
			return
		}
		for i := uint64(1); ; i++ {
			if i%1000 == 0 && !write(frame.Sync{}) {
				return
			}
			if !write(frame.Data{First: true, Last: true, OneWay: true, Exchange: i, Payload: []byte{0}}) {
				return
			}
		}
	}()
	s, err := streamer.Over(context.Background(), there, streamer.Config{Limits: streamer.Limits{MaxExchanges: 1},
		Accept: func(context.Context, frame.Hello) (streamer.Coder, streamer.Handler, error) {
			return newRawCoder(), nil, nil
		}})
	require.NoError(t, err)
	<-s.Done()
	assert.ErrorIs(t, s.Close(), &streamer.Error{Code: streamer.BeyondLimits})
	require.NoError(t, here.Close())
}
