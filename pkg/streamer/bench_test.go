package streamer_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

func BenchmarkCallSmall(b *testing.B) {
	p := connect(b, pairing{handlerb: echo})
	lane, payload := p.a.Lane(0), make([]byte, 40)
	b.ReportAllocs()
	for b.Loop() {
		r, err := lane.Call(b.Context(), streamer.NewMessage(nil, payload))
		require.NoError(b, err)
		_, err = r.ReadAll(100)
		require.NoError(b, err)
	}
}

func BenchmarkSendSmall(b *testing.B) {
	p := connect(b, pairing{handlerb: echo})
	lane, payload := p.a.Lane(0), make([]byte, 40)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, lane.Send(b.Context(), streamer.NewMessage(nil, payload)))
	}
}

func BenchmarkCallLarge(b *testing.B) {
	p := connect(b, pairing{handlerb: echo})
	lane, payload := p.a.Lane(0), make([]byte, 5<<20)
	b.SetBytes(2 * int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := lane.Call(b.Context(), streamer.NewMessage(nil, payload))
		require.NoError(b, err)
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(b, err)
	}
}

// overTCP runs a benchmark over the loopback, and reports the processor time of both ends.
func overTCP(b *testing.B, handler streamer.ExchangeHandler, run func(lane *streamer.Lane)) {
	l, err := tcp.Transport{}.Listen(b.Context(), "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept()
		accepted <- conn
	}()
	here, err := tcp.Transport{}.Dial(b.Context(), l.Addr().String())
	require.NoError(b, err)
	p := connectOver(b, pairing{handlerb: handler}, here, <-accepted)
	b.ReportAllocs()
	b.ResetTimer()
	before := clock.Processor()
	run(p.a.Lane(0))
	b.ReportMetric(float64(clock.Processor()-before)/float64(b.N), "cpu-ns/op")
}

func BenchmarkTCPCall(b *testing.B) {
	overTCP(b, echo, func(lane *streamer.Lane) {
		for range b.N {
			r, err := lane.Call(b.Context(), streamer.NewMessage(nil, make([]byte, 40)))
			require.NoError(b, err)
			_, err = r.ReadAll(100)
			require.NoError(b, err)
		}
	})
}

func BenchmarkTCPPipelined(b *testing.B) {
	overTCP(b, echo, func(lane *streamer.Lane) {
		begun := make(chan *streamer.Pending, 128)
		go func() {
			defer close(begun)
			for range b.N {
				p, err := lane.Begin(b.Context(), streamer.NewMessage(nil, make([]byte, 40)))
				if err != nil {
					return
				}
				begun <- p
			}
		}()
		for p := range begun {
			r, err := p.Reply(b.Context())
			require.NoError(b, err)
			_, err = r.ReadAll(100)
			require.NoError(b, err)
		}
	})
}

func BenchmarkTCPSend(b *testing.B) {
	came := make(chan struct{}, 1024)
	handler := func(ctx context.Context, x *streamer.Exchange) {
		echo(ctx, x)
		came <- struct{}{}
	}
	overTCP(b, handler, func(lane *streamer.Lane) {
		go func() {
			for range b.N {
				if lane.Send(b.Context(), streamer.NewMessage(nil, make([]byte, 40))) != nil {
					return
				}
			}
		}()
		for range b.N {
			<-came
		}
	})
}
