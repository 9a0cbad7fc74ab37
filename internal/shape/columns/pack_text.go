package columns

import "github.com/hhfr/hhfr/internal/bin"

// common is the number of bytes at the start that a and b share.
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
		w.bits(1<<3|textCount<<1, 4)
		return
	}
	if len(b) < shortestRef {
		e.raw(b)
		return
	}
	size, head := leadingWord(b)
	hash := uint64(0)
	if len(b) <= longestRef {
		first := load8(b, 0)
		hash = hashText(first, b)
		if size == len(b) {
			if i := m.wordsAt.find(&m.words, b, first, hash, maxWords); i >= 0 {
				number := m.words.numberBits()
				w.bits(0b01<<(number+2)|uint64(i)<<2|1, number+4)
				return
			}
		}
		if i := m.textsAt.find(&m.texts, b, first, hash, maxTexts); i >= 0 {
			w.bits(uint64(i)<<3|textRef<<1, m.texts.numberBits()+3)
			return
		}
	}
	start := common(b, before)
	end := commonEnd(b[start:], before[start:])
	most := 9*len(b) + 8
	edit := start+end > 3
	if edit {
		most = 3 + 3*8 + 8*(len(b)-start-end)
	}
	switch {
	case counts:
		w.bits(textCount<<1, 4)
		w.zigzag(step)
		m.step = step
		return
	case len(b) <= maxWorded && e.worded(b, size, head, most):
		if size == len(b) {
			return
		}
	case edit:
		w.bits(textEdit<<1, 3)
		w.uvarint(uint64(start))
		w.uvarint(uint64(end))
		w.uvarint(uint64(len(b) - start - end))
		w.out = append(w.out, b[start:len(b)-end]...)
		for at, n := range editedWords(b, start, len(b)-end) {
			word := b[at : at+n]
			m.wordsAt.add(&m.words, m.words.enter(word, maxWords), word, hashText(load8(word, 0), word), maxWords)
		}
	default:
		e.raw(b)
	}
	if i := m.texts.enter(b, maxTexts); i >= 0 {
		m.textsAt.add(&m.texts, i, b, hash, maxTexts)
	}
}

func (e *packer) raw(b []byte) {
	e.w.bits(textRaw<<1, 3)
	e.w.uvarint(uint64(len(b)))
	e.w.out = append(e.w.out, b...)
}

// worded writes a text as words, if that is not longer than its bytes by more than the words are
// worth once they are known. size and head are of its first word.
func (e *packer) worded(b []byte, size int, head uint64, most int) bool {
	w, m := &e.w, e.memory
	start, number := w.mark(), m.words.numberBits()
	e.fresh = e.fresh[:0]
	gaps := m.gaps
	acc, have := uint64(1), uint(1) // bits to be written
	for rest := b; ; {
		word, hash := rest[:size], uint64(0)
		i := -1
		if size >= shortestRef && size <= longestRef {
			hash = hashText(head, word)
			i = m.wordsAt.find(&m.words, word, head, hash, maxWords)
		}
		if i >= 0 {
			acc |= uint64(i) << (have + 1)
			have += number + 1
		} else {
			if size >= shortestRef && size <= longestRef {
				e.fresh = append(e.fresh, fresh{len(b) - len(rest), size, hash})
			}
			w.bits(acc, have)
			acc, have = 0, 0
			w.word(word, head)
		}
		gap := rest[size:]
		switch {
		case len(gap) == 0:
			acc |= 0b01 << have
			have += 2
		case len(gap) > 1 && gap[0] == ' ' && isWord(gap[1]):
			gap = gap[:1]
			have++
		default:
			gap = gap[:gapEnd(gap)]
			w.bits(acc|0b11<<have, have+2)
			w.gap(gap, &gaps)
			acc, have = 0, 1
			if len(gap) < len(rest)-size {
				acc = 1
			}
		}
		if rest = rest[size+len(gap):]; len(rest) == 0 {
			break
		}
		if have > 32 {
			w.bits(acc, have)
			acc, have = 0, 0
		}
		size, head = leadingWord(rest)
	}
	w.bits(acc, have)
	if w.size(start) > most {
		w.back(start)
		return false
	}
	if string(gaps[0]) != string(m.gaps[0]) || string(gaps[1]) != string(m.gaps[1]) {
		e.gaps, m.gaps = m.gaps, [2][]byte{append(e.gaps[0][:0], gaps[0]...), append(e.gaps[1][:0], gaps[1]...)}
	}
	for _, f := range e.fresh {
		word := b[f.at : f.at+f.size]
		m.wordsAt.add(&m.words, m.words.enter(word, maxWords), word, f.hash, maxWords)
	}
	return true
}

// gap writes what stands between two words, or at the end.
func (w *packWriter) gap(gap []byte, gaps *[2][]byte) {
	switch {
	case w.flag(string(gap) == string(gaps[0])):
	case w.flag(string(gap) == string(gaps[1])):
		gaps[0], gaps[1] = gaps[1], gaps[0]
	default:
		w.uvarint(uint64(len(gap)))
		w.out = append(w.out, gap...)
		gaps[1], gaps[0] = gaps[0], gap
	}
}

// word writes the characters of a word, of which head are the first eight.
func (w *packWriter) word(b []byte, head uint64) {
	n := uint64(len(b))
	if n <= 8 && lower(head, len(b)) {
		c := head & (0x1f * bin.Ones) // 'a' is 1
		c -= bin.Ones & (1<<(8*n) - 1)
		c = c&0x001f001f001f001f | c&0x1f001f001f001f00>>3
		c = c&0x000003ff000003ff | c&0x03ff000003ff0000>>6
		c = c&0xfffff | c>>32<<20
		w.bits(c<<6|n<<2|0b01, uint(6+5*n))
		return
	}
	class := classOf(b)
	flags := [...]uint64{0b01, 0b011, 0b0111, 0b1111}[class]
	size := [...]uint{2, 3, 4, 4}[class]
	w.bits(min(n, longWord)<<size|flags, size+4)
	if n >= longWord {
		w.uvarint(n - longWord)
	}
	acc, have := uint64(0), uint(0)
	for _, c := range b {
		switch class {
		case classLower:
			c -= 'a'
		case classDigit:
			c -= '0'
		case classAlnum:
			c = alnumOf[c] - 1
		}
		acc |= uint64(c) << have
		if have += classBits[class]; have > 48 {
			w.bits(acc, have)
			acc, have = 0, 0
		}
	}
	w.bits(acc, have)
}
