package columns

import (
	"encoding/binary"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/program"
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
