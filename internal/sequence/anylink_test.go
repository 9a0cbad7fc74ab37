package sequence_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// severed is a socket of which nothing gets through from some moment on, as if a machine had lost
// its power: no close frame tells the peer.
type severed struct {
	net.PacketConn
	at time.Time // zero: never
}

func (s severed) WriteTo(p []byte, to net.Addr) (int, error) {
	if !s.at.IsZero() && time.Now().After(s.at) {
		return len(p), nil
	}
	return s.PacketConn.WriteTo(p, to)
}

// anyLink draws what the links between two ends are like, and which of their connections are cut,
// and how.
type anyLink struct {
	t       *testing.T
	r       *rand.Rand
	profile string
	cfg     udp.Config
	cuts    int // how many connections are cut
	made    int
}

func newAnyLink(t *testing.T, seed uint64) *anyLink {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	profile := pick("gprs", "edge", "3g", "lte", "geo") + fmt.Sprintf(",loss=%d%%", r.IntN(31)) + pick("",
		",burst=3") + pick("", ",reorder=10%") + pick("", ",dup=10%") +
		pick("", ",jitter=100ms") + pick("", ",outage=3s/30s")
	return &anyLink{t: t, r: r, profile: profile, cfg: udp.Config{Datagram: []int{0, 300, 1472}[r.IntN(3)]},
		cuts: r.IntN(5)}
}

// conns makes the next connection; there is none if the link lost too much of what was to open it.
func (a *anyLink) conns() (ends [2]net.Conn) {
	a.made++
	p, err := link.ParseProfile(fmt.Sprintf("%s,seed=%d", a.profile, a.r.Uint32()))
	require.NoError(a.t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(a.t, err)
	cut, when, kind := a.cuts > 0, time.Duration(a.r.Int64N(int64(20*time.Second))), a.r.IntN(3)
	if a.cuts--; cut && kind == 2 {
		at := time.Now().Add(when)
		near, far = severed{near, at}, severed{far, at}
	}
	l, err := udp.Listen(far, a.cfg)
	require.NoError(a.t, err)
	defer func() { _ = l.Close() }() // late may have
	dialled, err := udp.Dial(a.t.Context(), near, far.LocalAddr(), a.cfg)
	if err != nil {
		return ends
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = l.Close() })
	defer late.Stop()
	accepted, err := l.Accept()
	if err != nil {
		_ = dialled.Close()
		return ends
	}
	ends = [2]net.Conn{dialled, accepted}
	if cut && kind < 2 {
		time.AfterFunc(when, func() { _ = ends[kind].Close() })
	}
	return ends
}

// notebook handles messages with effects of its own, some of which take long: it notes which it
// began. It outlives the processes that call it.
type notebook struct {
	mu      sync.Mutex
	numbers []uint64
}

func (*notebook) Transactional(sequence.Stored) bool { return false }

func (*notebook) Transact(context.Context, *wsrm.Tx, sequence.Stored) (sequence.Stored, error) {
	panic("not asked for")
}

func (b *notebook) Handle(_ context.Context, m sequence.Stored) sequence.Stored {
	n := binary.BigEndian.Uint64(m.Body)
	b.mu.Lock()
	b.numbers = append(b.numbers, n)
	b.mu.Unlock()
	if n%5 == 0 {
		time.Sleep(time.Duration(n) * 10 * time.Millisecond)
	}
	return sequence.Stored{Body: binary.BigEndian.AppendUint64(nil, n)}
}

// tally is what runs came to, which shows that they were no easy ones.
type tally struct {
	runs, streams, restarts, resent int
	again                           int // effects beyond the first of a message
	unknown                         int // fates
}

func (a *tally) add(b tally) {
	a.runs += b.runs
	a.streams += b.streams
	a.restarts += b.restarts
	a.resent += b.resent
	a.again += b.again
	a.unknown += b.unknown
}

// anyLinkAndCrashes has a seed decide on the link, the streams, their cuts, the assurance, the
// handler and when the power of either end's disk fails; what the assurance promises holds. It
// tells what came of it.
func anyLinkAndCrashes(t *testing.T, seed uint64) (came tally) {
	const messages = 60
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 6))
		cfg := sequence.Config{Assurance: wsrm.ExactlyOnce, Ordered: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			cfg.Assurance = wsrm.AtLeastOnce
		}
		notes := &notebook{}
		var handler sequence.MessageHandler = notes
		transactions := r.IntN(2) == 0
		if transactions {
			handler = ledger{}
		}
		w := newWorld(t, cfg, handler)
		links := newAnyLink(t, seed)
		w.conns = links.conns
		t.Logf("%v, ordered %v, transactions %v, %s, %d cuts", cfg.Assurance, cfg.Ordered, transactions,
			links.profile, links.cuts)
		for i, d := range w.disks {
			r := rand.New(rand.NewPCG(seed, uint64(8+i))) // each end has its own chance
			fails := r.IntN(4)
			d.failAt, d.written = r.IntN(30), r.IntN(2) == 0
			d.next = func() int {
				if fails--; fails < 0 {
					return 1 << 30
				}
				return 1 + r.IntN(30)
			}
		}
		bodies := rand.New(rand.NewPCG(seed, 10))
		longest, pause := []int{1, 200, 3000}[r.IntN(3)], r.Int64N(int64(time.Second))
		w.body = func(n uint64) []byte {
			time.Sleep(time.Duration(bodies.Int64N(pause + 1)))
			body := binary.BigEndian.AppendUint64(nil, n)
			for range bodies.IntN(longest) {
				body = append(body, byte(bodies.Uint32()))
			}
			return body
		}
		came.runs, came.restarts = 1, w.run(messages)
		came.streams = links.made
		status := w.ends[0].Status()
		came.resent = int(status.Resent)
		w.close()
		assert.EqualValues(t, messages, status.Done)
		assert.True(t, status.Over)

		effects := notes.numbers
		if transactions {
			effects = w.effect()
		}
		came.again = checkEffects(t, cfg, effects, messages, !transactions)
		came.unknown = checkReplies(t, w, effects, messages, !transactions && cfg.Assurance == wsrm.ExactlyOnce,
			!transactions || cfg.Ordered && cfg.Assurance == wsrm.ExactlyOnce)
		time.Sleep(time.Hour) // for what the connections left
	})
	return came
}

// checkEffects holds what was handled to the assurance. begun: an effect is noted before it is
// done, so that a crash may leave a message without one under exactly-once, and with many under
// at-least-once. It tells how many were had again.
func checkEffects(t *testing.T, cfg sequence.Config, effects []uint64, messages int, begun bool) (again int) {
	t.Helper()
	seen := map[uint64]bool{}
	last := uint64(0)
	for _, n := range effects {
		if seen[n] {
			again++
			assert.Equal(t, wsrm.AtLeastOnce, cfg.Assurance, "message %d twice", n)
			continue
		}
		seen[n] = true
		if cfg.Ordered {
			assert.Greater(t, n, last, "out of order")
		}
		last = n
	}
	if !begun || cfg.Assurance == wsrm.AtLeastOnce {
		assert.Len(t, seen, messages)
	}
	return again
}

// checkReplies: every message is settled, once, in the last life of who sent it, and with a reply;
// unknown: or an unknown fate. A life that ended took along what it alone knew. counts: replies
// tell the number of their message. It tells how many fates are unknown.
func checkReplies(t *testing.T, w *world, effects []uint64, messages int, unknown, counts bool) (fates int) {
	t.Helper()
	assert.False(t, w.twice, "a reply came twice")
	handled := map[uint64]bool{}
	for _, n := range effects {
		handled[n] = true
	}
	for n, r := range w.replies {
		if r.err != nil {
			fates++
			assert.True(t, unknown, "message %d: %v", n, r.err)
			assert.ErrorIs(t, r.err, &sequence.Error{Code: sequence.FateUnknown}, "message %d", n)
			continue
		}
		assert.True(t, handled[n], "message %d has a reply and no effect", n)
		if counts {
			assert.Equal(t, n, r.count)
		}
	}
	if w.failed[0] == 0 {
		assert.Len(t, w.replies, messages)
	}
	return fates
}

// Sequences over UDP on links that lose, reorder, duplicate and have outages, whose streams are
// cut, and the power of whose ends fails: what is assured holds.
func TestAnyLinkAndCrashes(t *testing.T) {
	var all tally
	const seeds = 100
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { all.add(anyLinkAndCrashes(t, seed)) })
	}
	t.Logf("%+v", all)
	if all.runs < seeds {
		return // only some were asked for
	}
	const easy = "the runs were too easy to show anything"
	assert.Greater(t, all.streams, 2*seeds, easy)
	assert.Greater(t, all.restarts, seeds, easy)
	assert.Positive(t, all.resent, easy)
	assert.Positive(t, all.again, easy)
	assert.Positive(t, all.unknown, easy)
}
