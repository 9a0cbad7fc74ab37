package shape_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	work "github.com/hhfr/hhfr/pkg/workload"
)

// packed is one end's packer and the other's unpacker, with their memories.
type packed struct {
	packer   columns.Packer
	unpacker columns.Unpacker
	ours     columns.Memory
	theirs   columns.Memory
	octets   int
	plain    int // segments that were not packed
	folds    int // 1 ours, 2 theirs, 3 both: folded and unfolded before each message
}

// fold folds memories and brings them back.
func (k *packed) fold() {
	for i, m := range []*columns.Memory{&k.ours, &k.theirs} {
		if k.folds>>i&1 != 0 {
			var f columns.Folded
			f.Fold(m)
			f.Unfold(m)
		}
	}
}

// message sends the segments of a message there, and requires them to come back as they were.
func (k *packed) message(t testing.TB, p *program.Program, segments []segment, most int) {
	t.Helper()
	k.fold()
	var at, there columns.Packing
	for i, s := range segments {
		if s.text {
			return
		}
		last := i == len(segments)-1
		octets := k.packer.Pack(nil, p, &at, &k.ours, s.octets, last, most)
		if octets[0] < 4 && octets[0]&1 == 0 {
			k.plain++
		}
		require.LessOrEqual(t, len(octets), max(most, len(s.octets)+1))
		k.octets += len(octets)
		back, err := k.unpacker.Unpack([]byte("before"), p, &there, &k.theirs, octets, last, max(most, len(s.octets)))
		require.NoError(t, err, "segment %d of %d", i, len(segments))
		require.Equal(t, string(s.octets), string(back[len("before"):]), "segment %d of %d", i, len(segments))
	}
}

// A memory that was folded is the same: what is packed with it is understood by one that was not,
// and the other way round, and is as short. It takes little room.
func TestFoldedMemory(t *testing.T) {
	for name, messages := range map[string]iter.Seq[[]byte]{
		"strings": work.Strings(1, 8), "floats": work.Floats(1, 10), "records": work.Records(1, 20),
		"headers": work.Headers(1),
	} {
		t.Run(name, func(t *testing.T) {
			p, contents, _ := contentsOf(t, slices.Collect(first(300, messages)))
			octets := 0
			for folds := range 4 {
				k := &packed{folds: folds}
				for i, c := range contents {
					if i%2 == 1 {
						k.message(t, p, []segment{{octets: c}, {octets: c}}, 16384)
					}
					k.message(t, p, []segment{{octets: c}}, 16384)
				}
				if folds == 0 {
					octets = k.octets
				}
				assert.InEpsilon(t, octets, k.octets, 0.02, "folds %d", folds)
				var f columns.Folded
				f.Fold(&k.ours)
				t.Logf("folds %d: %d octets packed, memory folds to %d", folds, k.octets, f.Size())
				if name != "strings" { // of random words
					assert.LessOrEqual(t, f.Size(), 1024)
				}
			}
		})
	}
	var empty columns.Memory
	var f columns.Folded
	f.Fold(&empty)
	f.Unfold(&empty)
	assert.Equal(t, columns.Memory{}, empty)
}

// TestPlainBehindValues: a segment that turns out not to be packed when part of it was noted resets
// the memory, once; those that follow are looked through before.
func TestPlainBehindValues(t *testing.T) {
	s, err := shape.New(element(text("<m>"), value(shape.TypeInt, shape.UntilTag), text("<t>"),
		value(shape.TypeString, shape.UntilTag), text("</t></m>")))
	require.NoError(t, err)
	p := program.Compile(s)
	whole := func(n byte) []byte { return []byte{n, 4, 'a', '-', 'b'} }
	inPieces := []byte{9, 0, 1, 'a', 3, '-', 'b'}
	k := new(packed)
	var at columns.Packing
	pack := func(segment []byte) []byte {
		at.Reset()
		packed := k.packer.Pack(nil, p, &at, &k.ours, segment, true, 100)
		at.Reset()
		back, err := k.unpacker.Unpack(nil, p, &at, &k.theirs, packed, true, 100)
		require.NoError(t, err)
		require.Equal(t, segment, back)
		return packed
	}
	first := len(pack(whole(7)))
	require.Less(t, len(pack(whole(7))), first)
	plain := pack(inPieces)
	require.True(t, columns.Resets(plain) && !columns.Packed(plain))
	require.Len(t, pack(whole(7)), first, "the memory is empty")
	again := pack(whole(7))
	plain = pack(inPieces)
	require.False(t, columns.Resets(plain) || columns.Packed(plain))
	require.Equal(t, again, pack(whole(7)), "the memory is as it was")
}

// Shapes that begin alike know of each other what is the same, in whatever order they come, however
// many there are, and wherever memories are folded; what cannot be packed comes between.
func TestShapesThatBeginAlike(t *testing.T) {
	c := alike()
	roots, bodies := append(c.others, c.root), slices.Clone(c.messages)
	rowsThen := func(row, then string) *shape.Node {
		return element(text("<q>"), array(0, 0, text(row)), text(then), value(shape.TypeInt, shape.UntilTag),
			text("</x></q>"))
	}
	roots = append(roots, rowsThen("<x", ">"), rowsThen("<y>", "<x>"),
		element(text("<q>"), array(0, 0, element(text("<x>"), value(shape.TypeInt, shape.UntilTag), text("</x>")),
			value(shape.TypeBoolean, shape.UntilTag)), text("</q>")))
	bodies = append(bodies, "<q><x>7</x></q>", "<q><x<x<x>3x</x></q>", "<q><y><y><x>12</x></q>",
		"<q><x>1</x>true<x>2x</x>false<x>3</x>true</q>", "<q><x>1</x>true<x>2</x>true</q>", "<q></q>")
	for i := range 400 {
		name := fmt.Sprintf("z%d", i)
		roots = append(roots, element(c.root.Kids[0], c.root.Kids[1], element(text("<"+name+">"),
			value(shape.TypeString, shape.UntilTag), text("</"+name+">")), text("</e>")))
		bodies = append(bodies, strings.Replace(c.messages[0], "<a>word</a>", "<"+name+">word</"+name+">", 1))
	}
	var programs []*program.Program
	var contents [][]byte
	for _, root := range roots {
		s, err := shape.New(root)
		require.NoError(t, err)
		programs = append(programs, program.Compile(s))
	}
	var of []*program.Program
	for _, body := range bodies {
		i := slices.IndexFunc(programs, func(p *program.Program) bool { return fits(p, body) })
		require.NotEqual(t, -1, i, body)
		segments := split(t, programs[i], []byte(body), 16384, 0)
		require.Len(t, segments, 1)
		of, contents = append(of, programs[i]), append(contents, segments[0].octets)
	}
	inPieces := []byte{0, 1, 'h', 9}
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		k := new(packed)
		for n := range 2000 {
			i := rnd.IntN(len(contents))
			if rnd.IntN(2) == 0 {
				i = rnd.IntN(20)
			}
			if k.folds = 0; rnd.IntN(4) == 0 {
				k.folds = rnd.IntN(4)
			}
			k.message(t, of[i], []segment{{octets: contents[i]}}, 16384)
			if n%300 == 299 {
				k.message(t, of[0], []segment{{octets: inPieces}}, 16384)
			}
		}
		assert.Positive(t, k.plain)
		assert.Less(t, k.octets, 7000, "twice as many without what they know of each other")
	}
}

func fits(p *program.Program, message string) bool {
	var s program.Splitter
	s.Reset(p, 16384, false, func(text bool, _ []byte) error {
		if text {
			return errors.New("it goes on as text")
		}
		return nil
	})
	return s.Split([]byte(message)) == nil
}

func BenchmarkPack(b *testing.B) {
	for _, name := range []string{"w1-8strings", "w2-10floats", "w2-1000floats", "w3-20records", "w3-500records",
		"w5-headers"} {
		b.Run(name, func(b *testing.B) {
			p, contents, octets := contentsOf(b, workload(b, name))
			var k columns.Packer
			var m columns.Memory
			var at columns.Packing
			var out []byte
			b.ReportAllocs()
			b.SetBytes(int64(octets))
			for i := 0; b.Loop(); i++ {
				at.Reset()
				out = k.Pack(out[:0], p, &at, &m, contents[i%len(contents)], true, 16384)
			}
		})
	}
}

func BenchmarkUnpack(b *testing.B) {
	for _, name := range []string{"w1-8strings", "w2-10floats", "w2-1000floats", "w3-20records", "w3-500records",
		"w5-headers"} {
		b.Run(name, func(b *testing.B) {
			p, contents, octets := contentsOf(b, workload(b, name))
			var k columns.Packer
			var u columns.Unpacker
			var m, theirs columns.Memory
			var at columns.Packing
			var out []byte
			var packed [][]byte
			for i := range 700 { // about as many small messages come between two syncs
				at.Reset()
				packed = append(packed, k.Pack(nil, p, &at, &m, contents[i%len(contents)], true, 16384))
			}
			b.ReportAllocs()
			b.SetBytes(int64(octets))
			for i := 0; b.Loop(); i++ {
				if i%len(packed) == 0 {
					theirs.Reset()
				}
				at.Reset()
				out, _ = u.Unpack(out[:0], p, &at, &theirs, packed[i%len(packed)], true, 16384)
			}
		})
	}
}

// contentsOf is the content of a workload's messages, and the bytes of one of them.
func first(n int, messages iter.Seq[[]byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		left := n
		for m := range messages {
			if left == 0 || !yield(bytes.Clone(m)) {
				return
			}
			left--
		}
	}
}

func contentsOf(b testing.TB, messages [][]byte) (p *program.Program, contents [][]byte, octets int) {
	s, err := learn.FromMessage(messages[0])
	require.NoError(b, err)
	p = program.Compile(s)
	for _, m := range messages {
		segments := split(b, p, m, 16384, 0)
		require.Len(b, segments, 1)
		contents = append(contents, segments[0].octets)
	}
	return p, contents, len(messages[0])
}
