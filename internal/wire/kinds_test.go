package wire_test

import (
	"bytes"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/workload"
)

// inTurn has kinds of messages take turns: of each the elements have names of their own.
func inTurn(kinds, passes int, messages iter.Seq[[]byte], names ...string) [][]byte {
	all := take(kinds*passes, messages)
	for i := range all {
		for _, name := range names {
			all[i] = bytes.ReplaceAll(all[i], []byte(name), fmt.Appendf(nil, "%s%04d", name, i%kinds))
		}
	}
	return all
}

func floatsInTurn(kinds, passes int) [][]byte {
	return inTurn(kinds, passes, workload.Floats(7, 10), "echoFloatArray", "input", "item")
}

func headersInTurn(kinds, passes int) [][]byte {
	return inTurn(kinds, passes, workload.Headers(7), "q:reportTrade", "q:symbol", "q:price", "q:volume")
}

// puts sends messages of kinds in turn, one lane's requests, and gives how many octets each pass
// took, with all that stands between.
func (l *line) puts(kinds int, messages [][]byte, shapes []*program.Program) (passes []int) {
	for i, m := range messages {
		if i%kinds == 0 {
			passes = append(passes, 0)
		}
		l.whole(l.begin(0, false, nil, m, nil, shapes[i%kinds]))
		passes[len(passes)-1] = len(l.tape)
	}
	for i := len(passes) - 1; i > 0; i-- {
		passes[i] -= passes[i-1]
	}
	return passes
}

// shapesOf are the shapes of kinds that take turns.
func shapesOf(p *pair, kinds int, messages [][]byte) (all []*program.Program) {
	for _, m := range messages[:kinds] {
		all = append(all, p.learn(string(m)))
	}
	return all
}

func sum(passes []int) (octets int) {
	for _, n := range passes {
		octets += n
	}
	return octets
}

// A thousand kinds on one stream take little more than one, and a decoder that has their shapes
// begins at each sync.
func TestManyKindsInTurn(t *testing.T) {
	const kinds, passes = 1000, 26
	all := floatsInTurn(kinds, passes)
	p := newPair(t, wire.EncoderConfig{}, allStages)
	octets := p.puts(kinds, all, shapesOf(p, kinds, all))
	assert.LessOrEqual(t, sum(octets[passes/3:]), 50*kinds*(passes-passes/3), "octets by pass: %v", octets)

	syncs := 0
	for from := 1; ; {
		at, _, ok := frame.FindSync(p.tape, from)
		if !ok {
			break
		}
		from = at + 1
		syncs++
		r := newReader(wire.DecoderConfig{Shapes: p.shapes, Named: p.shapes.named, MaxHeld: -1})
		_, err := r.read(p.tape[at-1:])
		require.NoError(t, err)
		require.NotEmpty(t, r.messages)
		first := int(r.messages[0].Exchange) - 1
		require.Len(t, r.messages, len(all)-first, "all behind the sync at %d", at)
		for i, m := range r.messages {
			require.NoError(t, m.err)
			require.Equal(t, string(all[first+i]), string(m.body))
		}
	}
	assert.GreaterOrEqual(t, syncs, 2)
}

// Between two syncs messages begin on a bounded number of lanes, whatever they cost.
func TestLanesWithoutSync(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	by := p.learn(element("a", 0))
	for lane := range uint64(2*frame.MaxSyncLanes + 2) {
		p.put(lane, by, element("a", 1))
	}
	require.NoError(t, p.deliver())
	assert.GreaterOrEqual(t, len(p.r.verdicts), 2)
}

// BenchmarkKinds reports what a message takes when many kinds take turns: in the first pass, which
// carries their shapes, and in those behind it, syncs among them.
func BenchmarkKinds(b *testing.B) {
	for name, messages := range map[string]func(kinds, passes int) [][]byte{"w2-10floats": floatsInTurn,
		"w5-headers": headersInTurn} {
		for _, kinds := range []int{1, 10, 100, 1000, 3000} {
			b.Run(fmt.Sprintf("%s/%d", name, kinds), func(b *testing.B) {
				passes := max(8, 20000/kinds)
				all := messages(kinds, passes)
				p := newPair(b, wire.EncoderConfig{}, allStages)
				shapes := shapesOf(p, kinds, all)
				for b.Loop() {
					l := newLine(b, wire.EncoderConfig{}, allStages)
					octets := l.puts(kinds, all, shapes)
					b.ReportMetric(float64(octets[0])/float64(kinds), "octets/first")
					b.ReportMetric(float64(sum(octets[1:]))/float64(kinds*(passes-1)), "octets/message")
				}
			})
		}
	}
}

// More kinds than the peer keeps numbers for: most keep theirs while the others take turns. Kinds
// that come no more give theirs to those that come.
func TestMoreKindsThanNumbers(t *testing.T) {
	const numbers, kinds, passes = 100, 150, 6
	all := floatsInTurn(2*kinds, 2*passes)
	of := func(half int) (messages [][]byte) {
		for i, m := range all {
			if i%(2*kinds)/kinds == half {
				messages = append(messages, m)
			}
		}
		return messages
	}
	p := newPairTo(t, wire.EncoderConfig{Limits: tight(numbers)}, announcing,
		wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20, MaxShapes: numbers})
	shapes := shapesOf(p, 2*kinds, all)
	announced := func(half int) (frames int) {
		messages := of(half)
		for i, m := range messages {
			p.send(1, shapes[half*kinds+i%kinds], string(m))
			if i >= len(messages)-kinds {
				frames += len(p.announced())
			}
		}
		return frames
	}
	assert.LessOrEqual(t, announced(0), kinds-numbers+1)
	assert.LessOrEqual(t, announced(1), kinds-numbers+1)
}
