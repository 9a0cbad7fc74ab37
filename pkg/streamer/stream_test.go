package streamer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCallGivesTheReply(t *testing.T) {
	for name, m := range map[string]struct{ head, body string }{
		"empty":          {"", ""},
		"body":           {"", "hello"},
		"head and body":  {"POST / HTTP/1.1\r\n\r\n", "hello"},
		"head only":      {"POST / HTTP/1.1\r\n\r\n", ""},
		"long head":      {strings.Repeat("h", 50000), "x"},
		"long both":      {strings.Repeat("h", 50000), strings.Repeat("b", 70000)},
		"exact fragment": {"", strings.Repeat("b", 16384-32)},
		"5 MB":           {"h", strings.Repeat("b", 5<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			p := connect(t, pairing{handlerb: echo})
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage([]byte(m.head), []byte(m.body)))
			require.NoError(t, err)
			assert.Equal(t, m.head, string(r.Head))
			assert.Equal(t, m.body, body(t, r))
			require.NoError(t, p.a.Close())
			require.NoError(t, p.b.Close())
			assert.Equal(t, p.a.Stats().Sent, p.b.Stats().Received)
			assert.Equal(t, p.b.Stats().Sent, p.a.Stats().Received)
		})
	}
}

func TestSmallMessageIsOneFrameOfThreeOctetsMore(t *testing.T) {
	p := connect(t, pairing{handlerb: echo})
	r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("hello")))
	require.NoError(t, err)
	body(t, r)
	assert.Equal(t, streamer.Count{Frames: 1, Octets: 3 + 5}, p.a.Stats().Sent.Data)
	_, err = p.a.Lane(0).Call(t.Context(), streamer.NewMessage([]byte("head"), []byte("hello")))
	require.NoError(t, err)
	assert.Equal(t, int64(2), p.a.Stats().Sent.Data.Frames)
}

func TestRepliesOvertakeAndBothEndsBegin(t *testing.T) {
	const n, back = 64, 16
	var mu sync.Mutex
	var waiting []chan struct{}
	all := make(chan struct{})
	handlerb := func(ctx context.Context, x *streamer.Exchange) {
		mine := make(chan struct{})
		mu.Lock()
		waiting = append(waiting, mine)
		if len(waiting) == n {
			close(all)
		}
		mu.Unlock()
		<-mine
		_ = x.Reply(ctx, x.Message())
	}
	p := connect(t, pairing{handlera: echo, handlerb: handlerb})
	var wg sync.WaitGroup
	var order []string
	for i := range n {
		wg.Go(func() {
			want := fmt.Sprintf("request %d", i)
			r, err := p.a.Lane(uint64(i%3)).Call(t.Context(), streamer.NewMessage(nil, []byte(want)))
			if assert.NoError(t, err) {
				assert.Equal(t, want, body(t, r))
				mu.Lock()
				order = append(order, want)
				mu.Unlock()
			}
		})
	}
	for i := range back {
		wg.Go(func() {
			want := fmt.Sprintf("from the responder %d", i)
			r, err := p.b.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte(want)))
			if assert.NoError(t, err) {
				assert.Equal(t, want, body(t, r))
			}
		})
	}
	<-all
	for i := n - 1; i >= 0; i-- {
		close(waiting[i])
	}
	wg.Wait()
	assert.Len(t, order, n)
}

func TestSendBeforeCloseArrives(t *testing.T) {
	const n = 500
	var mu sync.Mutex
	var got []string
	p := connect(t, pairing{buffer: 100, handlerb: func(_ context.Context, x *streamer.Exchange) {
		b, err := x.Message().ReadAll(1 << 20)
		assert.NoError(t, err)
		assert.True(t, x.OneWay())
		mu.Lock()
		got = append(got, string(b))
		mu.Unlock()
	}})
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("message %d", i))
		require.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(want[i]))))
	}
	require.NoError(t, p.a.Close())
	require.NoError(t, p.b.Close())
	assert.ElementsMatch(t, want, got)
}

func TestBothEndsSendingWithFullQueuesNeverWaitForEachOther(t *testing.T) {
	slow := streamer.Config{QueueBytes: 700, Limits: streamer.Limits{MaxFragment: 512, MaxExchanges: 8}}
	p := connect(t, pairing{buffer: 64, a: slow, b: slow, handlera: echo, handlerb: echo})
	big := bytes.Repeat([]byte("0123456789"), 10000)
	var wg sync.WaitGroup
	for i := range 32 {
		s := p.a
		if i%2 == 1 {
			s = p.b
		}
		wg.Go(func() {
			for range 3 {
				r, err := s.Lane(uint64(i)).Call(t.Context(), streamer.NewMessage([]byte("head"), big))
				if assert.NoError(t, err) {
					assert.Equal(t, string(big), body(t, r))
				}
			}
		})
	}
	wg.Wait()
}
