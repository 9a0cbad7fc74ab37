package streamer_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestMoreOpenMessagesThanASyncLists: a sync frame lists so many open messages only. That hinders
// none, both ways at once, requests and their replies.
func TestMoreOpenMessagesThanASyncLists(t *testing.T) {
	const calls = 700
	for name, queue := range map[string]int64{"a queue for one fragment": 400, "a queue for most": 512 << 9} {
		t.Run(name, func(t *testing.T) {
			cfg := streamer.Config{QueueBytes: queue, Limits: streamer.Limits{MaxExchanges: 2 * calls,
				MaxFragment: 512}}
			p := connect(t, pairing{a: cfg, b: cfg, handlera: echo, handlerb: echo})
			want := bytes.Repeat([]byte("0123456789"), 300)
			var all sync.WaitGroup
			for i := range calls {
				for _, s := range []*streamer.Stream{p.a, p.b} {
					all.Go(func() {
						r, err := s.Lane(uint64(i%20)).Call(t.Context(), streamer.NewMessage(nil, want))
						if assert.NoError(t, err) {
							got, err := r.ReadAll(1 << 20)
							assert.NoError(t, err)
							assert.True(t, bytes.Equal(want, got))
						}
					})
				}
			}
			all.Wait()
			require.NoError(t, p.a.Close())
			require.NoError(t, p.b.Close())
		})
	}
}
