package wire_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// traffic has messages of all sorts on some lanes, in fragments that interleave, some given up,
// with pauses; every message that was sent whole is in line.sent.
func traffic(t testing.TB, l *line, all []kind, rnd *rand.Rand, messages int) {
	var open []*sending
	for messages > 0 || len(open) > 0 {
		switch c := rnd.IntN(20); {
		case c == 0:
			l.now = l.now.Add(time.Duration(rnd.Int64N(int64(20 * time.Minute))))
		case c == 1:
			l.enc.Restart(rnd.Uint64N(4))
		case c == 2:
			l.enc.Rest(l.now.Add(-30 * time.Second))
			l.take()
		case c == 3 && len(open) > 0:
			i := rnd.IntN(len(open))
			l.enc.Drop(&open[i].Outgoing, frame.Aborted)
			l.take()
			delete(l.sent, open[i].Key)
			open = append(open[:i], open[i+1:]...)
		case c < 12 && messages > 0 && len(open) < 6:
			messages--
			k := all[rnd.IntN(len(all))]
			s := l.begin(rnd.Uint64N(4), rnd.IntN(2) == 0, k.head, k.bodies[rnd.IntN(len(k.bodies))], k.headBy, k.by)
			s.OneWay = !s.Reply && rnd.IntN(4) == 0
			s.apart = rnd.IntN(3) == 0
			if l.next(s) {
				open = append(open, s)
			}
		case len(open) > 0:
			if i := rnd.IntN(len(open)); !l.next(open[i]) {
				open = append(open[:i], open[i+1:]...)
			}
		}
	}
}

// What is encoded is decoded, with every set of stages, whatever the limits of the peer, cut
// anywhere; all is verified.
func TestWhatIsEncodedIsDecoded(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)
	for seed := range uint64(64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		stages := seed % 8
		if stages&wire.Columns == 0 {
			stages &^= wire.Memory
		}
		if stages&wire.Zstd != 0 && seed >= 8 {
			stages |= wire.Plain
		}
		cfg := wire.EncoderConfig{SyncBytes: 1 << (9 + rnd.IntN(8)), Limits: hello.Limits}
		cfg.Limits.MaxFragment = uint64(512 << rnd.IntN(6))
		cfg.Limits.MaxShapes = uint64(1 + rnd.IntN(40))
		cfg.Limits.MaxShapeBytes = uint64(200 << rnd.IntN(12))
		t.Run(fmt.Sprintf("%d stages %d", seed, stages), func(t *testing.T) {
			l := newLine(t, cfg, stages)
			traffic(t, l, all, rnd, 80)
			l.enc.Close(frame.CloseDone, "")
			l.take()
			theirs := newShelf()
			r := newReader(wire.DecoderConfig{Shapes: theirs, MaxFragment: int(cfg.Limits.MaxFragment),
				MaxShapes: int(cfg.Limits.MaxShapes), MaxShapeOctets: int64(cfg.Limits.MaxShapeBytes),
				MaxHeld: 1 << 20, MaxOpen: 100, Scratch: seed%3 == 0, Reuse: seed%2 == 0})
			var b []byte
			for rest := l.tape; len(rest) > 0; {
				n := min(len(rest), 1+rnd.IntN(3000))
				var err error
				b, err = r.read(append(b, rest[:n]...))
				require.NoError(t, err)
				rest = rest[n:]
			}
			assert.Empty(t, b)
			assert.True(t, r.closed)
			assert.Empty(t, r.lacks)
			assert.Zero(t, r.passed)
			assert.Zero(t, r.dec.Open())
			requireSent(t, l, r, true)
		})
	}
}

// requireSent holds what came against what was sent.
func requireSent(t *testing.T, l *line, r *reader, all bool) (whole int) {
	t.Helper()
	for _, m := range r.messages {
		s := l.sent[m.Key]
		if s == nil {
			require.Contains(t, []string{"cancelled", "lost"}, m.state, "%s", m)
			continue
		}
		if !m.whole {
			continue
		}
		whole++
		require.NoError(t, m.err, "%s", m)
		require.Equal(t, s.OneWay, m.OneWay)
		require.Equal(t, string(s.head), string(m.head), "%s", m)
		require.Equal(t, string(s.body), string(m.body), "%s", m)
		if !s.Texts() && l.stages&wire.Plain == 0 { // text counts as content, where a shape is announced by it
			require.Equal(t, s.content, m.content, "credit would drift: %s", m)
		}
		if all {
			require.Equal(t, "verified", m.state, "%s", m)
		}
	}
	if all {
		require.Len(t, l.sent, whole)
	}
	return whole
}

// A decoder that begins anywhere reads from the next sync on; one that misses octets goes on at the
// next sync behind them.
func TestJoiningAnywhere(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)
	rnd := rand.New(rand.NewPCG(5, 5))
	l := newLine(t, wire.EncoderConfig{SyncBytes: 4000, Limits: hello.Limits}, 7)
	traffic(t, l, all, rnd, 150)
	l.enc.Close(frame.CloseDone, "")
	l.take()
	cfg := wire.DecoderConfig{Shapes: ours, Named: ours.named, MaxHeld: -1}
	for range 60 {
		from := rnd.IntN(len(l.tape))
		r := newReader(cfg)
		r.dec.Lose(-1)
		rest, err := r.read(l.tape[from:])
		require.NoError(t, err)
		assert.Empty(t, rest)
		at, _, ok := frame.FindSync(l.tape, from)
		if !ok {
			assert.Empty(t, r.messages)
			continue
		}
		assert.Equal(t, at-from, r.passed)
		whole := requireSent(t, l, r, false)
		for _, m := range r.messages {
			assert.True(t, !m.whole || m.state == "verified", "%s", m)
		}
		if from < len(l.tape)/2 {
			assert.Greater(t, whole, 10)
		}
	}
	for range 60 {
		hole := rnd.IntN(len(l.tape) - 3000)
		n := 1 + rnd.IntN(2000)
		r := newReader(cfg)
		rest, err := r.read(l.tape[:hole])
		require.NoError(t, err)
		missing := int64(n + len(rest))
		if rnd.IntN(2) == 0 {
			missing = -1
		}
		for _, ev := range r.dec.Lose(missing) {
			r.event(&ev)
		}
		rest, err = r.read(l.tape[hole+n:])
		require.NoError(t, err)
		assert.Empty(t, rest)
		requireSent(t, l, r, false)
		assert.Greater(t, len(r.messages), 50)
	}
}

// A shape that the decoder lacks is asked for; what needs it waits, and all behind it on its lane;
// other lanes go on.
func TestLackingShapesAreAskedFor(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)
	l := newLine(t, wire.EncoderConfig{}, 7)
	for fp := range ours.shapes {
		l.peer.believed[fp] = true
	}
	r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
	a, b := all[0], all[2]
	for i := range 4 {
		l.whole(l.begin(1, false, nil, a.bodies[i], nil, a.by))
		l.whole(l.begin(2, false, nil, []byte("text"), nil, nil))
		l.whole(l.begin(1, false, nil, b.bodies[i], nil, b.by))
	}
	rest, err := r.read(l.tape)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Len(t, r.messages, 4, "those of lane 2")
	require.Equal(t, []uint64{1, 2}, r.lacks)
	from := len(l.tape)
	for _, number := range r.lacks {
		for tr := l.enc.Lacks(number); !l.enc.Piece(tr, l.now); {
			continue
		}
	}
	l.enc.Close(frame.CloseDone, "")
	l.take()
	_, err = r.read(l.tape[from:])
	require.NoError(t, err)
	requireSent(t, l, r, true)
}

// What waits is dropped when there is too much of it, or its number is given to another shape; its
// lane goes on when its memory begins anew.
func TestWhatWaitsTooLongIsDropped(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)
	a, b := all[0], all[2]
	begin := func(most int64) (*line, *reader) {
		l := newLine(t, wire.EncoderConfig{Limits: frame.Limits{MaxFragment: 16384, MaxShapes: 4,
			MaxShapeBytes: 1 << 20}}, 7)
		for fp := range ours.shapes {
			l.peer.believed[fp] = true
		}
		l.whole(l.begin(1, false, nil, a.bodies[0], nil, a.by))
		l.whole(l.begin(1, false, nil, a.bodies[1], nil, a.by))
		r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: most})
		_, err := r.read(l.tape)
		require.NoError(t, err)
		return l, r
	}
	more := func(l *line, r *reader, write func()) {
		from := len(l.tape)
		write()
		l.take()
		_, err := r.read(l.tape[from:])
		require.NoError(t, err)
	}
	for name, most := range map[string]int64{"too much": 10, "another shape": 1000} {
		t.Run(name, func(t *testing.T) {
			l, r := begin(most)
			if name == "another shape" {
				more(l, r, func() {
					l.tape = frame.Shape{Number: 1, Form: frame.Reference,
						Fingerprint: b.by.Shape().Fingerprint()}.AppendTo(l.tape)
				})
			}
			for _, m := range l.sent {
				assert.False(t, m.Begun() && m.OneWay)
			}
			more(l, r, func() { l.whole(l.begin(1, false, nil, []byte("text"), nil, nil)) })
			last := r.messages[len(r.messages)-1]
			require.NoError(t, last.err)
			assert.Equal(t, "text", string(last.body))
		})
	}
}

// A direction whose bit is flipped anywhere gives no message as verified that was not sent, and
// never fails in another way than by an error.
func TestNothingDamagedIsVerified(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)[:4]
	all[3].bodies = all[3].bodies[:1]
	for _, stages := range []uint64{0, 1, 3, 4, 7, 36, 37, 39} {
		l := newLine(t, wire.EncoderConfig{SyncMessages: 3, SyncBytes: 500, Limits: frame.Limits{MaxFragment: 512,
			MaxShapes: 8, MaxShapeBytes: 1 << 20}}, stages)
		traffic(t, l, all, rand.New(rand.NewPCG(stages, 9)), 8)
		l.enc.Close(frame.CloseDone, "")
		l.take()
		verified := 0
		step := max(1, len(l.tape)/60)
		for bit := 0; bit < 8*len(l.tape) && !t.Failed(); bit += step {
			b := append([]byte(nil), l.tape...)
			b[bit/8] ^= 1 << (bit % 8)
			r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1})
			for len(b) > 0 {
				rest, err := r.read(b)
				if err == nil {
					break
				}
				for _, ev := range r.dec.Lose(1) {
					r.event(&ev)
				}
				b = rest[1:]
			}
			for _, m := range r.messages {
				if m.state != "verified" || m.err != nil {
					continue
				}
				verified++
				s := l.sent[m.Key]
				if s == nil || s.OneWay != m.OneWay || string(s.head) != string(m.head) ||
					string(s.body) != string(m.body) {
					assert.Fail(t, "verified, and not what was sent", "stages %d, bit %d of octet %d: %s", stages,
						bit%8, bit/8, m)
				}
			}
		}
		assert.Positive(t, verified)
	}
}

// A sync that stands alone, in front of those of the stream, costs what comes before the next of
// these; no message behind it is verified that was not sent.
func TestJoiningAtAStraySync(t *testing.T) {
	ours := newShelf()
	all := kinds(t, ours)[:3]
	l := newLine(t, wire.EncoderConfig{SyncMessages: 3, SyncBytes: 500}, 7)
	traffic(t, l, all, rand.New(rand.NewPCG(4, 9)), 12)
	l.enc.Close(frame.CloseDone, "")
	l.take()
	stray := frame.Sync{Word: [8]byte{1, 2}, Offset: 700, Representation: frame.Binary, Stages: 7}.AppendTo(nil)
	for _, from := range []int{1, len(l.tape) / 3} {
		r := newReader(wire.DecoderConfig{Shapes: ours, Named: ours.named, MaxHeld: -1})
		b := slices.Concat(stray, l.tape[from:])
		for len(b) > 0 {
			rest, err := r.read(b)
			if err == nil {
				break
			}
			for _, ev := range r.dec.Lose(1) {
				r.event(&ev)
			}
			b = rest[1:]
		}
		verified := 0
		for _, m := range r.messages {
			if m.state == "verified" {
				verified++
				assert.Equal(t, string(l.sent[m.Key].body), string(m.body))
			}
		}
		assert.Greater(t, verified, len(l.sent)/3)
		assert.True(t, r.closed)
	}
}

// A decoder that skims has the same messages and verdicts, and no content.
func TestSkimming(t *testing.T) {
	ours := newShelf()
	l := newLine(t, wire.EncoderConfig{SyncMessages: 3, SyncBytes: 500}, 7)
	traffic(t, l, kinds(t, ours), rand.New(rand.NewPCG(5, 9)), 40)
	l.enc.Close(frame.CloseDone, "")
	l.take()
	var both [2]*reader
	for i := range both {
		both[i] = newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1, Skim: i == 1})
		rest, err := both[i].read(l.tape)
		require.NoError(t, err)
		require.Empty(t, rest)
	}
	assert.Equal(t, both[0].verdicts, both[1].verdicts)
	require.Len(t, both[1].messages, len(both[0].messages))
	for i, m := range both[1].messages {
		assert.Equal(t, both[0].messages[i].state, m.state)
		assert.Equal(t, both[0].messages[i].Number, m.Number)
		assert.Empty(t, m.body)
		assert.NoError(t, m.err)
	}
}
