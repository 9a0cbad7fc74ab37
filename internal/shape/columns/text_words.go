package columns

import (
	"encoding/binary"
	"iter"
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
)

const (
	// longWord is the length from which on it takes more than four bits.
	longWord = 15
)

// Classes of the characters of a word.
const (
	classLower = iota
	classDigit
	classAlnum
	classOctet
)

// Forms of a text that is not words (wire-format section 11.5).
const (
	textRef   = iota // an entry of the texts
	textRaw          // length and bytes
	textEdit         // the beginning and the end of the one before, and what stands between
	textCount        // the one before, with its last number changed by a step
)

// classBits are the widths of their characters.
var classBits = [4]uint{5, 4, 6, 8}

// alnum are the characters of classAlnum.
const alnum = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

var alnumOf = func() (t [256]uint8) {
	for i := range alnum {
		t[alnum[i]] = uint8(i) + 1
	}
	return t
}()

// fresh is a word that is not in the memory yet, by its place in a text or in the arena.
type fresh struct {
	at, size int
	hash     uint64
}

func gapEnd(b []byte) int {
	for i, c := range b {
		if isWord(c) {
			return i
		}
	}
	return len(b)
}

// lower reports whether a word of n bytes, at most eight, is nothing but a to z.
func lower(w uint64, n int) bool {
	all := uint64(1)<<(8*uint(n)) - 1
	return (w|(w+(0x7f-'z')*bin.Ones)|^(w+(0x80-'a')*bin.Ones))&all&(0x80*bin.Ones) == 0
}

func classOf(b []byte) int {
	lower, digit, other := true, true, false
	for _, c := range b {
		lower = lower && c >= 'a' && c <= 'z'
		digit = digit && c >= '0' && c <= '9'
		other = other || c >= 0x80
	}
	switch {
	case lower:
		return classLower
	case digit:
		return classDigit
	case !other:
		return classAlnum
	}
	return classOctet
}

// load8 gives the bytes at i of b, as many as there are up to eight, the first as the lowest.
func load8(b []byte, i int) (w uint64) {
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b[len(b)-8:]) >> (8 * uint(i+8-len(b)))
	}
	for k := len(b) - 1; k >= i; k-- {
		w = w<<8 | uint64(b[k])
	}
	return w
}

// isWord tells the bytes that words are made of.
func isWord(c byte) bool { return alnumOf[c] > 0 || c >= 0x80 }

// notWords has bit 7 of each byte that is no part of a word.
func notWords(w uint64) uint64 {
	const low = 0x7f * bin.Ones
	digits, letters, line := w&low, (w|0x20*bin.Ones)&low, (w^'_'*bin.Ones)&low
	isDigit := (digits + (0x80-'0')*bin.Ones) &^ (digits + (0x7f-'9')*bin.Ones)
	isLetter := (letters + (0x80-'a')*bin.Ones) &^ (letters + (0x7f-'z')*bin.Ones)
	return ^(w | isDigit | isLetter | ^(line + low)) & (0x80 * bin.Ones)
}

// leadingWord gives the length of the word that b begins with, and its first eight bytes with
// zeros behind it.
func leadingWord(b []byte) (n int, head uint64) {
	head = load8(b, 0)
	const low = 0x7f * bin.Ones
	others := head | (head&low + (0x7f-'z')*bin.Ones) | ^(head&low + (0x80-'a')*bin.Ones) // bit 7: not a to z
	if others &= 0x80 * bin.Ones; others != 0 {
		if n = bits.TrailingZeros64(others) >> 3; n == len(b) || !isWord(b[n]) {
			return n, head & (1<<(8*uint(n)) - 1)
		}
		if ends := notWords(head); ends != 0 {
			n = bits.TrailingZeros64(ends) >> 3
			return n, head & (1<<(8*uint(n)) - 1)
		}
	}
	for n = 8; n < len(b); n += 8 {
		if ends := notWords(load8(b, n)); ends != 0 {
			return n + bits.TrailingZeros64(ends)>>3, head
		}
	}
	return min(n, len(b)), head
}

// editedWords gives the words of b that the bytes between start and end are part of, by their
// places and sizes.
func editedWords(b []byte, start, end int) iter.Seq2[int, int] {
	for start > 0 && isWord(b[start-1]) {
		start--
	}
	return func(yield func(int, int) bool) {
		for at := start; at < end; {
			n, _ := leadingWord(b[at:])
			if n >= shortestRef && n <= longestRef && !yield(at, n) {
				return
			}
			at += n
			at += gapEnd(b[at:])
		}
	}
}
