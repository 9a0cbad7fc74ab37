package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

const (
	// goalMessages messages of ten floats are sent at once, of kinds that both ends know; goalContent is what one of them takes at least, in octets.
	goalMessages = 100
	goalContent  = 45
)

// thin is a stream over datagrams on an emulated link, one way, within a synctest bubble.
type thin struct {
	t        *testing.T
	from, to *streamer.Stream
	conn     interface{ Stats() wsrm.Stats }

	mu     sync.Mutex // for handlers
	bodies [][]byte
}

// openThin opens it: shapes travel with the first messages.
func openThin(t *testing.T, profile string) *thin {
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(t, err)
	l, err := udp.Listen(far, udp.Config{})
	require.NoError(t, err)
	s := &thin{t: t}
	coder := func() *binary.Coder {
		return binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{})
	}
	there := make(chan *streamer.Stream)
	go func() {
		c, err := l.Accept()
		require.NoError(t, err)
		to, err := streamer.Over(t.Context(), c, streamer.Config{Limits: streamer.Limits{MaxExchanges: 4 * goalMessages}, Accept: func(context.Context, frame.Hello) (streamer.Coder, streamer.Handler, error) {
			return coder(), s.handle, nil
		}})
		require.NoError(t, err)
		there <- to
	}()
	c, err := udp.Dial(t.Context(), near, far.LocalAddr(), udp.Config{})
	require.NoError(t, err)
	s.conn = c.(interface{ Stats() wsrm.Stats })
	s.from, err = streamer.Over(t.Context(), c, streamer.Config{Initiator: true, Token: make([]byte, frame.TokenLen), Representation: frame.Binary, Coder: coder()})
	require.NoError(t, err)
	s.to = <-there
	require.NoError(t, l.Close())
	return s
}

func (s *thin) handle(_ context.Context, x *streamer.Exchange) {
	body, err := x.Message().ReadAll(1 << 20)
	assert.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, body)
}

func (s *thin) arrived() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

// send sends messages at once, and waits until all have arrived and this end knows it.
func (s *thin) send(messages [][]byte) (took time.Duration) {
	before, began := len(s.arrived()), time.Now()
	for _, m := range messages {
		require.NoError(s.t, s.from.Lane(0).Send(s.t.Context(), streamer.NewMessage(nil, m)))
	}
	for len(s.arrived()) < before+len(messages) || s.conn.Stats().Flight > 0 {
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
	}
	for _, m := range messages {
		require.True(s.t, slices.ContainsFunc(s.arrived()[before:], func(b []byte) bool { return bytes.Equal(b, m) }))
	}
	return time.Since(began)
}

func (s *thin) close() {
	_ = s.from.Close() // the end of a link that loses is not what this is about
	<-s.to.Done()
	_ = s.to.Close()
}

// goal is how long a hundred messages take, by what a seed has happen to the datagrams.
func goal(t *testing.T, profile string, seed uint64) (took time.Duration, stats wsrm.Stats) {
	synctest.Test(t, func(t *testing.T) {
		var messages [][]byte
		for m := range workload.Floats(seed+1, 10) {
			if messages = append(messages, bytes.Clone(m)); len(messages) == 3+goalMessages {
				break
			}
		}
		s := openThin(t, fmt.Sprintf("%s,seed=%d", profile, seed))
		s.send(messages[:3])
		time.Sleep(5 * time.Second)
		before := s.conn.Stats()
		took = s.send(messages[3:])
		stats = s.conn.Stats()
		stats.Sent -= before.Sent
		stats.Resent -= before.Resent
		s.close()
	})
	return took, stats
}

// A hundred messages on a bad modem, through everything: streams with columns and memory, over UDP, exactly once and in order. Held against the time of their octets and two round trips.
func TestGoalOnAThinLink(t *testing.T) {
	p, err := link.ParseProfile("14k4")
	require.NoError(t, err)
	const datagrams, headers = 4, 28 + 8
	least := time.Duration(goalMessages*goalContent+datagrams*headers)*8*time.Second/time.Duration(p.Bandwidth) + 2*p.RTT
	var all []time.Duration
	var sent, resent int64
	for seed := range uint64(200) {
		took, stats := goal(t, "14k4,loss=5%", seed)
		all = append(all, took)
		sent += stats.Sent
		resent += stats.Resent
	}
	slices.Sort(all)
	median, tail := float64(all[100])/float64(least), float64(all[190])/float64(least)
	t.Logf("least %v; median %v, %.2f times; 95th percentile %v, %.2f times; longest %v; %.1f datagrams, %.1f units sent again", least, all[100], median, all[190], tail, all[199], float64(sent)/200, float64(resent)/200)
	assert.LessOrEqual(t, median, 1.3)
	assert.LessOrEqual(t, tail, 2.5)
}
