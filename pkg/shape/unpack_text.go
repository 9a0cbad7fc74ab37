package shape

import "bytes"

// reserve makes room for n octets of text; false: there is none.
func (u *Unpacker) reserve(n uint64) bool {
	if u.r.err != nil || n > uint64(u.most-len(u.arena)) {
		u.r.fail("texts longer than a fragment")
		return false
	}
	return true
}

// readText reads one text; before is the one before it at its place.
func (u *Unpacker) readText(before []byte) (b []byte) {
	r, m, from := &u.r, u.memory, len(u.arena)
	if r.flag() {
		u.readWords()
		b = u.arena[from:]
		m.learn(b)
		return b
	}
	switch r.wide(2) {
	case textRef:
		i := int(r.wide(m.texts.numberBits(maxTexts)))
		if i >= m.texts.len(maxTexts) {
			r.fail("text that was not seen")
			return nil
		}
		e := m.texts.at(i).bytes()
		if u.reserve(uint64(len(e))) {
			u.arena = append(u.arena, e...)
		}
		return u.arena[from:]
	case textRaw:
		b = r.take(r.uvarint())
	case textEdit:
		head, tail := r.uvarint(), r.uvarint()
		middle := r.take(r.uvarint())
		n := uint64(len(before))
		if head > n || tail > n-head || !u.reserve(head+tail+uint64(len(middle))) {
			r.fail("more of a text than there is")
			return nil
		}
		u.arena = append(u.arena, before[:head]...)
		u.arena = append(u.arena, middle...)
		u.arena = append(u.arena, before[n-tail:]...)
		b = u.arena[from:]
	case textCount:
		if !r.flag() {
			m.step = r.zigzag()
		}
		if b = u.countOn(before, m.step); b == nil {
			return nil
		}
	}
	m.learn(b)
	return b
}

// readWords reads words and what stands between them.
func (u *Unpacker) readWords() {
	r := &u.r
	for r.err == nil {
		u.readWord()
		if !r.flag() {
			u.add(" ")
			continue
		}
		if !r.flag() {
			return
		}
		u.readGap()
		if !r.flag() {
			return
		}
	}
}

func (u *Unpacker) add(b string) {
	if u.reserve(uint64(len(b))) {
		u.arena = append(u.arena, b...)
	}
}

func (u *Unpacker) readGap() {
	r, m := &u.r, u.memory
	if !r.flag() {
		if r.flag() {
			m.gaps[0], m.gaps[1] = m.gaps[1], m.gaps[0]
		} else {
			m.gaps[1], m.gaps[0] = m.gaps[0], bytes.Clone(r.take(r.uvarint()))
		}
	}
	u.add(string(m.gaps[0]))
}

func (u *Unpacker) readWord() {
	r, m := &u.r, u.memory
	if !r.flag() {
		i := int(r.wide(m.words.numberBits(maxWords)))
		if i >= m.words.len(maxWords) {
			r.fail("word that was not seen")
			return
		}
		u.add(string(m.words.at(i).bytes()))
		return
	}
	class := 0
	for class < classOctet && r.flag() {
		class++
	}
	n := r.wide(4)
	if n == longWord {
		n += r.uvarint()
	}
	if n > uint64(u.most) || !u.reserve(n) {
		return
	}
	for range n {
		c := r.wide(classBits[class])
		switch class {
		case classLower:
			c += 'a'
		case classDigit:
			c += '0'
		case classAlnum:
			if c >= uint64(len(alnum)) {
				r.fail("character of a word")
				return
			}
			c = uint64(alnum[c])
		}
		u.arena = append(u.arena, byte(c))
	}
}
