package streamer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// overLink gives both ends of a connection over UDP on an emulated link, in the bubble of a test.
func overLink(t *testing.T, profile string, wrap func(near, far net.PacketConn) (net.PacketConn, net.PacketConn)) (here, there net.Conn) {
	t.Helper()
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(t, err)
	if wrap != nil {
		near, far = wrap(near, far)
	}
	cfg := udp.Config{Linger: time.Hour, Inactivity: time.Hour, Unanswered: time.Hour}
	l, err := udp.Listen(far, cfg)
	require.NoError(t, err)
	here, err = udp.Dial(t.Context(), near, far.LocalAddr(), cfg)
	require.NoError(t, err)
	there, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return here, there
}

// closeBoth ends both streams in order, as far as the link lets them within their time.
func closeBoth(t *testing.T, p *pair) {
	t.Helper()
	var both sync.WaitGroup
	both.Go(func() { _ = p.a.Close() })
	both.Go(func() { _ = p.b.Close() })
	both.Wait()
}

// text is a body of a seed, of the kind of one of the shapes that rawCoder has.
func text(r *rand.Rand, n int) string {
	kind := []string{"", "", "#1", "#2", "#3"}[r.IntN(5)]
	return fmt.Sprintf("%s %d %s", kind, n, strings.Repeat(string('a'+rune(r.IntN(26))), r.IntN([]int{20, 300, 3000, 40000}[r.IntN(4)])))
}

// anyOrder has a seed decide on link and traffic: every message arrives once, octet for octet, and so does its reply.
func anyOrder(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	profile := []string{"edge", "3g", "lte", "geo"}[r.IntN(4)] + fmt.Sprintf(",loss=%d%%,reorder=%d%%,dup=%d%%,seed=%d", r.IntN(20), r.IntN(15), r.IntN(10), seed)
	synctest.Test(t, func(t *testing.T) {
		a, b := newRawCoder(), newRawCoder()
		for _, c := range []*rawCoder{a, b} {
			c.shapes[1], c.shapes[2], c.shapes[3] = []byte("one"), []byte(strings.Repeat("large", 4000)), []byte("three")
			c.refer[3] = true
		}
		if r.IntN(2) == 0 {
			b.store[fingerprint("three")] = []byte("three")
		}
		var mu sync.Mutex
		got := map[string]int{}
		here, there := overLink(t, profile, nil)
		p := connectOver(t, pairing{a: streamer.Config{Unordered: true, HelloTimeout: time.Hour}, b: streamer.Config{HelloTimeout: time.Hour}, codera: a, coderb: b, handlerb: func(ctx context.Context, x *streamer.Exchange) {
			m, err := x.Message().ReadAll(1 << 20)
			if !assert.NoError(t, err) {
				return
			}
			mu.Lock()
			got[string(m)]++
			mu.Unlock()
			if !x.OneWay() {
				assert.NoError(t, x.Reply(ctx, streamer.NewMessage(x.Message().Head, m)))
			}
		}}, here, there)
		assert.True(t, p.a.Unordered() && p.b.Unordered())
		var all sync.WaitGroup
		n := 20 + r.IntN(60)
		for i := range n {
			body, head, oneway, lane := text(r, i), []byte(strings.Repeat("h", r.IntN(2000))), r.IntN(4) == 0, uint64(r.IntN(3))
			all.Go(func() {
				m := streamer.NewMessage(head, []byte(body))
				if oneway {
					assert.NoError(t, p.a.Lane(lane).Send(t.Context(), m))
					return
				}
				reply, err := p.a.Lane(lane).Call(t.Context(), m)
				if assert.NoError(t, err) {
					assert.Equal(t, string(head), string(reply.Head))
					back, err := reply.ReadAll(1 << 20)
					assert.NoError(t, err)
					assert.True(t, body == string(back))
				}
			})
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		all.Wait()
		time.Sleep(2 * time.Minute) // what is under way is so for good
		closeBoth(t, p)
		for _, s := range []*streamer.Stream{p.a, p.b} {
			if err := s.Err(); err != nil {
				assert.ErrorIs(t, err, &streamer.Error{Code: streamer.GoingAway}, "five seconds may be too short for the end, and for nothing else")
			}
		}
		assert.Len(t, got, n)
		for m, times := range got {
			assert.Equal(t, 1, times, "%.20s", m)
		}
	})
}

func TestAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anyOrder(t, seed) })
	}
}

// A long message goes in fragments, beside which small ones pass.
func TestLongMessageUnordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := overLink(t, "lte,loss=2%,reorder=2%,seed=3", nil)
		p := connectOver(t, pairing{a: streamer.Config{Unordered: true}, handlerb: echo}, here, there)
		long := strings.Repeat("a long message ", 200_000)
		var all sync.WaitGroup
		took := time.Duration(0)
		all.Go(func() {
			began := time.Now()
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(long)))
			if assert.NoError(t, err) {
				assert.True(t, long == body(t, r))
			}
			took = time.Since(began)
		})
		time.Sleep(time.Second)
		began := time.Now()
		for range 10 {
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("small")))
			require.NoError(t, err)
			assert.Equal(t, "small", body(t, r))
		}
		small := time.Since(began)
		all.Wait()
		assert.Less(t, small, took, "ten small ones, one after the other, do not wait for the long one: %v, %v", small, took)
		closeBoth(t, p)
	})
}
