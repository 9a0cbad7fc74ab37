package sequence_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// overLink makes connections over UDP on an emulated link.
func overLink(t *testing.T, profile string) (ends [2]net.Conn) {
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(t, err)
	l, err := udp.Listen(far, udp.Config{})
	require.NoError(t, err)
	ends[0], err = udp.Dial(t.Context(), near, far.LocalAddr(), udp.Config{})
	require.NoError(t, err)
	ends[1], err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return ends
}

// Sequences over streams whose messages come in any order, on links that lose, and that break now and then: each message has its effect once, and, ordered, in order.
func TestUnorderedStreams(t *testing.T) {
	const messages = 60
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 5))
				w := newWorld(t, exactly(seed%2 == 0), ledger{})
				streams := 0
				w.conns = func() [2]net.Conn {
					streams++
					ends := overLink(t, fmt.Sprintf("edge,loss=%d%%,reorder=5%%,seed=%d", r.IntN(15), seed*100+uint64(streams)))
					if streams <= 2 {
						time.AfterFunc(time.Duration(300+r.IntN(500))*time.Millisecond, func() { _ = ends[1].Close() })
					}
					return ends
				}
				w.run(messages)
				w.close()
				assert.Greater(t, streams, 1, "it did not break: the test shows nothing")
				w.check(messages)
				assert.Len(t, w.replies, messages)
				time.Sleep(time.Hour) // for what the connections left
			})
		})
	}
}
