package streamer_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
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
