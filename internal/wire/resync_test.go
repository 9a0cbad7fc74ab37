package wire_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// A decoder that begins at a resync with nothing at all decodes every message behind it, also those
// of shapes that the peer had before: over further syncs, with shapes on their way, messages open,
// and tables that are full. The peer sees no difference.
func TestResync(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		cfg := wire.EncoderConfig{SyncBytes: 1 << (11 + rnd.IntN(6)), Limits: hello.Limits}
		cfg.Limits.MaxShapes = uint64(3 + rnd.IntN(40))
		cfg.Limits.MaxFragment = uint64(512 << rnd.IntN(6))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLine(t, cfg, 7)
			if seed%2 == 0 {
				for fp := range ours.shapes {
					l.peer.sure[fp] = true // of an earlier stream
				}
			}
			traffic(t, l, all, rnd, 40)
			k := all[rnd.IntN(len(all))]
			open := l.begin(1, false, k.head, all[3].bodies[0], k.headBy, all[3].by)
			require.True(t, l.next(open) || cfg.Limits.MaxFragment > 2000)
			body := "<slow>"
			for range 200 { // distinct names, which do not compress
				a, b, c := rnd.Uint64(), rnd.Uint64(), rnd.Uint64()
				body += fmt.Sprintf("<n%016x%016x%016x>1</n%016[1]x%016[2]x%016[3]x>", a, b, c)
			}
			body += "</slow>"
			slow := ours.Keep(shapeOf(t, body))
			onItsWay := l.enc.Announce(0, &wire.Part{Program: slow}, false, l.now)
			l.take()

			at := len(l.tape)
			l.enc.Resync(false, l.now)
			l.take()
			later := len(l.sent)
			if seed%3 == 0 {
				l.enc.Sync(l.now)
				f, _, err := frame.Parse(l.enc.Bytes(), int64(len(l.tape)), 0)
				require.NoError(t, err)
				assert.NotEmpty(t, f.(frame.Sync).Shapes, "a message under one is open")
			}
			if onItsWay != nil {
				for !l.enc.Piece(onItsWay, l.now) {
					continue
				}
			}
			for len(open.bodyLeft)+len(open.headLeft) > 0 {
				l.next(open)
			}
			l.whole(l.begin(1, false, nil, []byte(body), nil, slow))
			traffic(t, l, all, rnd, 60)
			l.enc.Close(frame.CloseDone, "")
			l.take()

			peer := newReader(wire.DecoderConfig{Shapes: wholeShelf(ours, seed%2 == 0), MaxHeld: 1 << 20})
			_, err := peer.read(l.tape)
			require.NoError(t, err)
			assert.Empty(t, peer.lacks)
			requireSent(t, l, peer, true)

			late := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1})
			late.dec.Lose(-1)
			rest, err := late.read(l.tape[at:])
			require.NoError(t, err)
			assert.Empty(t, rest)
			assert.Zero(t, late.passed)
			assert.True(t, late.closed)
			assert.GreaterOrEqual(t, requireSent(t, l, late, false), len(l.sent)-later)
			for _, m := range late.messages {
				assert.True(t, !m.whole || m.state == "verified", "%s", m)
			}
		})
	}
}

// wholeShelf has all that another has, or nothing.
func wholeShelf(of *shelf, all bool) *shelf {
	s := newShelf()
	for _, p := range of.shapes {
		if all {
			s.Keep(p.Shape())
		}
	}
	return s
}

// A peer that asks again and again has no more than a resync in five seconds; what this end wants
// itself is done at once.
func TestResyncIsAskedForInVain(t *testing.T) {
	l := newLine(t, wire.EncoderConfig{}, 7)
	syncs := func(asked bool) (n int) {
		l.enc.Resync(asked, l.now)
		for _, w := range l.enc.Written() {
			if w.Kind == frame.KindSync {
				n++
			}
		}
		l.take()
		return n
	}
	assert.Equal(t, 1, syncs(true))
	l.now = l.now.Add(4 * time.Second)
	assert.Zero(t, syncs(true))
	l.now = l.now.Add(2 * time.Second)
	assert.Equal(t, 1, syncs(true))
	assert.Equal(t, 1, syncs(false))
}
