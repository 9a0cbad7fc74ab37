package streamer_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// weighed counts the octets of the datagrams that are sent.
type weighed struct {
	net.PacketConn
	octets *atomic.Int64
}

func (s weighed) WriteTo(b []byte, to net.Addr) (int, error) {
	s.octets.Add(int64(len(b)))
	return s.PacketConn.WriteTo(b, to)
}

func bookCoder() streamer.Coder {
	return binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{})
}

// waits sends a hundred messages one way, so far apart, when shapes are known, and tells how long each took until it was read, and the octets of all datagrams of their sender.
func waits(t *testing.T, profile string, unordered bool, every time.Duration, messages iter.Seq[[]byte]) (waits []time.Duration, octets int64) {
	t.Helper()
	const known, all = 3, 103
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		here, there := overLink(t, profile, func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
			return weighed{near, &sent}, far
		})
		var mu sync.Mutex
		queued := map[string]time.Time{}
		accepted := make(chan *streamer.Stream, 1)
		go func() {
			s, err := streamer.Over(context.Background(), there, streamer.Config{Accept: func(context.Context, frame.Hello) (streamer.Coder, streamer.Handler, error) {
				return bookCoder(), func(_ context.Context, x *streamer.Exchange) {
					body, err := x.Message().ReadAll(1 << 20)
					assert.NoError(t, err)
					mu.Lock()
					defer mu.Unlock()
					if at, ok := queued[string(body)]; ok {
						waits = append(waits, time.Since(at))
						delete(queued, string(body))
					}
				}, nil
			}})
			assert.NoError(t, err)
			accepted <- s
		}()
		a, err := streamer.Over(context.Background(), here, streamer.Config{Initiator: true, Token: make([]byte, 16), Representation: 1, Coder: bookCoder(), Unordered: unordered})
		require.NoError(t, err)
		b := <-accepted
		require.Equal(t, unordered, a.Unordered())
		n := 0
		for m := range messages {
			if n++; n > known {
				mu.Lock()
				queued[string(m)] = time.Now()
				mu.Unlock()
			}
			require.NoError(t, a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, m)))
			if n == known {
				time.Sleep(3 * time.Minute)
				sent.Store(0)
			} else if n > known {
				time.Sleep(every)
			}
			if n == all {
				break
			}
		}
		time.Sleep(5 * time.Minute)
		octets = sent.Load()
		closeBoth(t, &pair{a: a, b: b})
	})
	require.Len(t, waits, all-known)
	return waits, octets
}

var seeds = flag.Uint64("seeds", 4, "how many seeds TestWhatOrderCostsStreams takes; docs/architecture.md has 40")

// What order costs and saves, in whole streams (docs/architecture.md): messages that come each for themselves are longer, and wait for no other.
func TestWhatOrderCostsStreams(t *testing.T) {
	kinds := []struct {
		name string
		make func(seed uint64) iter.Seq[[]byte]
	}{
		{"w2-10floats", func(seed uint64) iter.Seq[[]byte] { return workload.Floats(seed, 10) }},
		{"w3-20records", func(seed uint64) iter.Seq[[]byte] { return workload.Records(seed, 20) }},
		{"w5-headers", workload.Headers},
	}
	for _, link := range []string{"14k4", "edge"} {
		for _, every := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second} {
			for _, kind := range kinds {
				var took [2][]time.Duration
				var octets [2]int64
				for seed := range *seeds {
					for i := range took {
						w, n := waits(t, fmt.Sprintf("%s,loss=5%%,seed=%d", link, seed+1), i == 1, every, kind.make(seed))
						took[i] = append(took[i], w...)
						octets[i] += n / int64(*seeds)
					}
				}
				share := func(i, percent int) float64 {
					slices.Sort(took[i])
					return took[i][len(took[i])*percent/100].Seconds()
				}
				t.Logf("%-4s every %-5v %-12s ordered: %5.2f s median, %5.2f s 95 %%, %5d octets; unordered: %5.2f s, %5.2f s, %5d octets", link, every, kind.name,
					share(0, 50), share(0, 95), octets[0], share(1, 50), share(1, 95), octets[1])
				if kind.name == "w5-headers" {
					assert.Less(t, 2*octets[0], octets[1], "memory between messages saves more than half")
				}
				if link == "edge" && every == 200*time.Millisecond {
					assert.Less(t, share(1, 90), 0.5*share(0, 95), "where there is room, none waits for another that was lost")
				}
			}
		}
	}
}
