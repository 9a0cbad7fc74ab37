package columns

import (
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/pkg/workload"
)

// BenchmarkWords is the least that words cost, per message of w1-8strings: to find where they end,
// to hash them, to look them up, and nothing else. Copying the texts is for comparison.
func BenchmarkWords(b *testing.B) {
	var messages [][][]byte
	for m := range workload.Strings(1, 8) {
		var texts [][]byte
		for _, t := range regexp.MustCompile(`<item>([^<]*)`).FindAllSubmatch(m, -1) {
			texts = append(texts, t[1])
		}
		if messages = append(messages, texts); len(messages) == 100 {
			break
		}
	}
	var words ring
	var at index
	// all does something with each word of a message.
	all := func(texts [][]byte, do func(word []byte, head uint64)) {
		for _, t := range texts {
			for rest := t; len(rest) > 0; {
				n, head := leadingWord(rest)
				do(rest[:n], head)
				rest = rest[n:]
				rest = rest[gapEnd(rest):]
			}
		}
	}
	for _, texts := range messages {
		all(texts, func(word []byte, head uint64) {
			if len(word) < shortestRef {
				return
			}
			if hash := hashText(head, word); at.find(&words, word, head, hash, maxWords) < 0 {
				at.add(&words, words.enter(word, maxWords), word, hash, maxWords)
			}
		})
	}
	sum := uint64(0)
	var out []byte
	for _, way := range []struct {
		name string
		do   func(texts [][]byte)
	}{
		{"copied", func(texts [][]byte) {
			out = out[:0]
			for _, t := range texts {
				out = append(out, t...)
			}
		}},
		{"ends", func(texts [][]byte) { all(texts, func(_ []byte, head uint64) { sum += head }) }},
		{"hashes", func(texts [][]byte) { all(texts, func(word []byte, head uint64) { sum += hashText(head, word) }) }},
		{"numbers", func(texts [][]byte) {
			all(texts, func(word []byte, head uint64) {
				sum += uint64(at.find(&words, word, head, hashText(head, word), maxWords))
			})
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				way.do(messages[i%len(messages)])
			}
		})
	}
	if sum == 0 || len(out) == 0 {
		b.Fatal("nothing was done")
	}
}

// TestTextsWithZerosAreNotWhatTheyBeginWith: the memory fills short texts up with zeros, and tells
// them apart.
func TestTextsWithZerosAreNotWhatTheyBeginWith(t *testing.T) {
	s, err := shape.New(&shape.Node{Kind: shape.Value, Type: shape.TypeString, Until: shape.UntilEnd})
	require.NoError(t, err)
	p := program.Compile(s)
	var k Packer
	var u Unpacker
	var m, theirs Memory
	for _, text := range []string{"a-b\x00", "a-b", "a-b\x00\x00", "a-b", "a-b\x00", "abc\x00", "abc", "abc\x00"} {
		segment := append(binary.AppendUvarint(nil, uint64(len(text))+1), text...)
		var at, there Packing
		packed := k.Pack(nil, p, &at, &m, segment, true, 1000)
		back, err := u.Unpack(nil, p, &there, &theirs, packed, true, 1000)
		require.NoError(t, err)
		require.Equal(t, segment, back)
	}
}

// TestRingsKeepTheLatest: rings have the latest texts, short ones and the longest, however often
// they went round and however their sizes change, and take room for what they have.
func TestRingsKeepTheLatest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	sizes := map[string]func(i int) int{
		"short": func(int) int { return shortestRef },
		"long":  func(int) int { return longestRef },
		"mixed": func(int) int { return shortestRef + rnd.IntN(longestRef-shortestRef+1) },
		"short, then long, and again": func(i int) int {
			if i/700%2 == 0 {
				return shortestRef
			}
			return longestRef - rnd.IntN(2)
		},
	}
	for name, size := range sizes {
		for _, most := range []int{maxTexts, maxWords} {
			var r ring
			var all [][]byte
			for i := range 5 * most {
				b := make([]byte, size(i))
				binary.LittleEndian.PutUint16(b, uint16(i))
				b[len(b)-1] = byte(i >> 16)
				require.Equal(t, i%most, r.enter(b, most), name)
				if all = append(all, b); len(all) > most {
					all = all[1:]
				}
				if i%97 != 0 {
					continue
				}
				for k, want := range all {
					n := (i + 1 - len(all) + k) % most
					require.Equal(t, want, r.at(n), "%s: entry %d of %d", name, n, i)
				}
			}
			require.LessOrEqual(t, len(r.text), max(most*longestRef*6/5, 2*most*size(0)), name)
			r.free()
		}
	}
}
