package columns

import "math/bits"

// readText reads one text; before is the one before it at its place.
func (u *Unpacker) readText(before []byte) (b []byte) {
	r, m, from := &u.r, u.memory, len(u.arena)
	if r.flag() {
		word := u.readWords()
		if b = u.arena[from:]; !word {
			m.texts.enter(b, maxTexts)
		}
		return b
	}
	switch r.wide(2) {
	case textRef:
		i := int(r.wide(m.texts.numberBits()))
		if i >= m.texts.len {
			r.Fail("text that was not seen")
			return nil
		}
		u.add(m.texts.at(i))
		return u.arena[from:]
	case textRaw:
		b = r.Take(r.Uvarint())
	case textEdit:
		head, tail := r.Uvarint(), r.Uvarint()
		middle := r.Take(r.Uvarint())
		n := uint64(len(before))
		if head > n || tail > n-head || !u.reserve(head+tail+uint64(len(middle))) {
			r.Fail("more of a text than there is")
			return nil
		}
		u.arena = append(u.arena, before[:head]...)
		u.arena = append(u.arena, middle...)
		u.arena = append(u.arena, before[n-tail:]...)
		b = u.arena[from:]
		for at, n := range editedWords(b, int(head), len(b)-int(tail)) {
			m.words.enter(b[at:at+n], maxWords)
		}
	case textCount:
		if !r.flag() {
			m.step = r.zigzag()
		}
		return u.countOn(before, m.step)
	}
	m.texts.enter(b, maxTexts)
	return b
}

// knownWord reads a text that is one word which was seen, nil if it is another. It is as it stands
// in the memory.
func (u *Unpacker) knownWord() []byte {
	words := &u.memory.words
	look, number := u.r.ahead(), words.numberBits()
	i := int(look.acc >> 2 & (1<<number - 1))
	if look.acc&3 != 1 || look.acc>>(2+number)&3 != 1 || look.have < int(4+number) || i >= words.len {
		return nil
	}
	u.r.behind(look.drop(4 + number))
	return words.at(i)
}

// readWords reads words and what stands between them, and enters those that are new. word tells
// that it was one word and nothing else.
func (u *Unpacker) readWords() (word bool) {
	r, m := &u.r, u.memory
	number := m.words.numberBits()
	u.fresh = u.fresh[:0]
	look := r.ahead()
	for one := true; r.Err == nil; one = false {
		if look.acc&1 == 0 {
			i := int(look.acc >> 1 & (1<<number - 1))
			look = look.drop(1 + number)
			if i >= m.words.len {
				r.Fail("word that was not seen")
				break
			}
			e := m.words.at(i)
			if at := len(u.arena); u.most-at >= longestRef && cap(u.arena)-at >= longestRef && cap(e) >= longestRef {
				*(*[longestRef]byte)(u.arena[at : at+longestRef]) = [longestRef]byte(e[:longestRef])
				u.arena = u.arena[:at+len(e)]
			} else {
				u.add(e)
			}
		} else {
			look = u.readWord(look)
		}
		if look = look.fill(r.Seg); look.acc&1 == 0 {
			look = look.drop(1)
			if len(u.arena) == u.most || look.have < 0 {
				r.Fail("texts longer than a fragment")
				break
			}
			u.arena = append(u.arena, ' ')
			continue
		}
		gap := look.acc&2 != 0
		if look = look.drop(2); gap {
			r.behind(look)
			if gap = u.readGap(); gap {
				look = r.ahead()
				continue
			}
		} else {
			r.behind(look)
			word = one
		}
		break
	}
	if r.Err == nil {
		for _, f := range u.fresh {
			m.words.enter(u.arena[f.at:f.at+f.size], maxWords)
		}
	}
	return word
}

// readGap reads what stands between words; more: a word follows.
func (u *Unpacker) readGap() (more bool) {
	r, m := &u.r, u.memory
	if !r.flag() {
		other := m.gaps[1]
		if m.gaps[1] = m.gaps[0]; r.flag() {
			m.gaps[0] = other
		} else {
			m.gaps[0] = append(other[:0], r.Take(r.Uvarint())...)
		}
	}
	u.add(m.gaps[0])
	return r.flag()
}

// readWord reads the characters of a word.
func (u *Unpacker) readWord(b bitReader) bitReader {
	r := &u.r
	class := min(bits.TrailingZeros64(^(b.acc >> 1)), classOctet)
	b = b.drop(uint(1 + min(class+1, classOctet)))
	n := b.acc & 15
	if b = b.drop(4); n == longWord {
		r.behind(b)
		n += r.Uvarint()
		b = r.ahead()
	}
	if n > uint64(u.most) || !u.reserve(n) {
		return b
	}
	at, width := len(u.arena), classBits[class]
	u.fresh = append(u.fresh, fresh{at: at, size: int(n)})
	for ; n > 0 && b.have >= 0; n-- {
		if b.have < int(width) {
			b = b.fill(r.Seg)
		}
		c := byte(b.acc & (1<<width - 1))
		b = b.drop(width)
		switch class {
		case classLower:
			c += 'a'
		case classDigit:
			c += '0'
		case classAlnum:
			if int(c) >= len(alnum) {
				r.Fail("character of a word")
				return b
			}
			c = alnum[c]
		}
		u.arena = append(u.arena, c)
	}
	return b
}

// countOn gives the text whose last number is a step from that of before.
func (u *Unpacker) countOn(before []byte, step int64) []byte {
	from, to, number := counted(before)
	if from == to || !u.reserve(uint64(len(before))) {
		u.r.Fail("text without a number to count on")
		return nil
	}
	at := len(u.arena)
	u.arena = append(u.arena, before...)
	b := u.arena[at:]
	if number += step; number < 0 || step > maxStep {
		u.r.Fail("number of a text that is out of range")
		return nil
	}
	for i := to - 1; i >= from; i-- {
		b[i] = '0' + byte(number%10)
		number /= 10
	}
	if number > 0 {
		u.r.Fail("number of a text that is out of range")
		return nil
	}
	return b
}
