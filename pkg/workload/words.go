package workload

import (
	"math/rand/v2"
	"sync"
)

const sentenceLen = 24

// words are the 2000 fixed words of 2 to 4 syllables; always the same, whatever the seed of the
// messages.
var words = sync.OnceValue(func() []string {
	const consonants, vowels = "bcdfghklmnprstvw", "aeiou"
	rnd := generator(2000)
	seen := map[string]bool{}
	list := make([]string, 0, 2000)
	for len(list) < cap(list) {
		var w []byte
		for range 2 + rnd.IntN(3) {
			w = append(w, consonants[rnd.IntN(len(consonants))], vowels[rnd.IntN(len(vowels))])
		}
		if s := string(w); !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
})

// appendSentence appends words with blanks between them, cut to 23 characters, and a full stop.
func appendSentence(b []byte, r *rand.Rand) []byte {
	from := len(b)
	for {
		b = append(b, words()[r.IntN(len(words()))]...)
		if len(b)-from >= sentenceLen-1 {
			break
		}
		b = append(b, ' ')
	}
	return append(b[:from+sentenceLen-1], '.')
}
