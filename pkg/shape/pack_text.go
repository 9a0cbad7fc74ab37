package shape

import "bytes"

// Forms of a text that is not words (wire-format section 11.5).
const (
	textRef   = iota // an entry of the texts
	textRaw          // length and octets
	textEdit         // the beginning and the end of the one before, and what stands between
	textCount        // the one before, with its last number changed by a step
)

const (
	// maxWorded bounds a text that is taken apart into words, in octets.
	maxWorded = 4096
	// longWord is the length from which on it takes more than four bits.
	longWord = 15
	// classes of the characters of a word
	classLower = 0
	classDigit = 1
	classAlnum = 2
	classOctet = 3
)

var classBits = [4]uint{5, 4, 6, 8}

// alnum are the characters of classAlnum.
const alnum = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

var alnumOf = func() (t [256]uint8) {
	for i := range alnum {
		t[alnum[i]] = uint8(i) + 1
	}
	return t
}()

// isWord tells the octets that words are made of.
func isWord(c byte) bool { return alnumOf[c] > 0 || c >= 0x80 }

// wordEnd is the length of the word at the start of b.
func wordEnd(b []byte) int {
	for i, c := range b {
		if !isWord(c) {
			return i
		}
	}
	return len(b)
}

func gapEnd(b []byte) int {
	for i, c := range b {
		if isWord(c) {
			return i
		}
	}
	return len(b)
}

// learn enters a text and its words.
func (m *Memory) learn(b []byte) {
	if len(b) > maxWorded {
		return
	}
	for rest := b; len(rest) > 0; {
		n := wordEnd(rest)
		m.words.enter(rest[:n], maxWords)
		if n == len(b) {
			return
		}
		rest = rest[n:]
		rest = rest[gapEnd(rest):]
	}
	m.texts.enter(b, maxTexts)
}

// common is the number of octets at the start that a and b share.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func commonEnd(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}

// text writes one text; before is the one before it at its place.
func (e *packer) text(b, before []byte) {
	w, m := &e.w, e.memory
	step, counts := countStep(b, before)
	if counts && step == m.step {
		w.bits(textCount<<1, 3)
		w.flag(true)
		m.learn(b)
		return
	}
	if n := m.words.find(b); n >= 0 && wordEnd(b) == len(b) { // a word that is known: nothing is learned
		w.bits(0b1, 2)
		w.bits(uint64(n), m.words.numberBits(maxWords))
		w.bits(0b01, 2)
		return
	}
	if i := m.texts.find(b); i >= 0 {
		w.bits(textRef<<1, 3)
		w.bits(uint64(i), m.texts.numberBits(maxTexts))
		return
	}
	head := common(b, before)
	tail := commonEnd(b[head:], before[head:])
	switch {
	case counts:
		w.bits(textCount<<1, 3)
		w.flag(false)
		w.zigzag(step)
		m.step = step
	case head+tail > 3 && head+tail > len(b)/2:
		w.bits(textEdit<<1, 3)
		w.uvarint(uint64(head))
		w.uvarint(uint64(tail))
		w.uvarint(uint64(len(b) - head - tail))
		w.out = append(w.out, b[head:len(b)-tail]...)
	case len(b) > maxWorded || len(b) < shortestRef || !e.worded(b):
		w.bits(textRaw<<1, 3)
		w.uvarint(uint64(len(b)))
		w.out = append(w.out, b...)
	}
	m.learn(b)
}

// worded writes a text as words, if that is shorter than its octets.
func (e *packer) worded(b []byte) bool {
	w, m := &e.w, e.memory
	start := w.mark()
	gaps := m.gaps
	w.bits(1, 1)
	for rest := b; ; {
		n := wordEnd(rest)
		e.word(rest[:n])
		rest = rest[n:]
		n = gapEnd(rest)
		gap, more := rest[:n], n < len(rest)
		switch {
		case n == 0:
			w.bits(0b01, 2)
		case more && n == 1 && gap[0] == ' ':
			w.bits(0, 1)
		default:
			w.bits(0b11, 2)
			e.putGap(gap)
			w.flag(more)
		}
		if w.size(start) > 8*(len(b)+1) {
			w.back(start)
			m.gaps = gaps
			return false
		}
		if !more {
			return true
		}
		rest = rest[n:]
	}
}

// putGap writes what stands between two words, or at the end.
func (e *packer) putGap(gap []byte) {
	w, m := &e.w, e.memory
	switch {
	case w.flag(bytes.Equal(gap, m.gaps[0])):
	case w.flag(bytes.Equal(gap, m.gaps[1])):
		m.gaps[0], m.gaps[1] = m.gaps[1], m.gaps[0]
	default:
		w.uvarint(uint64(len(gap)))
		w.out = append(w.out, gap...)
		m.gaps[1], m.gaps[0] = m.gaps[0], bytes.Clone(gap)
	}
}

// word writes a word: the number of one that was seen, or its characters.
func (e *packer) word(b []byte) {
	w := &e.w
	if i := e.memory.words.find(b); i >= 0 {
		w.bits(0, 1)
		w.bits(uint64(i), e.memory.words.numberBits(maxWords))
		return
	}
	class := classOf(b)
	w.bits(1, 1)
	w.bits([...]uint64{0, 0b01, 0b011, 0b111}[class], [...]uint{1, 2, 3, 3}[class])
	w.bits(uint64(min(len(b), longWord)), 4)
	if len(b) >= longWord {
		w.uvarint(uint64(len(b) - longWord))
	}
	for _, c := range b {
		switch class {
		case classLower:
			c -= 'a'
		case classDigit:
			c -= '0'
		case classAlnum:
			c = alnumOf[c] - 1
		}
		w.bits(uint64(c), classBits[class])
	}
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
