package columns

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// Note remembers the content of a part that travelled as text (wire-format section 4.2): that of
// arrays, too, as single fields. sends: this is the end that sent it. What cannot be packed changes
// nothing.
func (k *Packer) Note(of *program.Program, m *Memory, segment []byte, sends bool) {
	p := (*code.Code)(of)
	e, w := &k.e, new(position)
	if e.gather.begin(p, w, segment, true); !e.gather.gather(segment, true) {
		return
	}
	if m.full() {
		m.Reset()
	}
	e.memory, e.recall, e.time = m, m.of(p), timeline{}
	before := m.weight
	for i := range e.gather.events {
		ev := &e.gather.events[i]
		o, pl := &p.Ops()[ev.pc], &e.recall.places[p.Steps()[ev.pc].Place]
		if ev.leaf >= 0 {
			k.noteColumn(o, pl, ev.sub, &e.gather.leaves[ev.leaf], sends)
			continue
		}
		if ev.kinded {
			pl.kind = ev.kind
		}
		switch str := e.gather.seg.Seg[ev.at : ev.at+ev.size]; ev.sub {
		case subText, subOctets:
			m.noteString(pl, ev.sub, str, sends)
		default:
			k.noteNumber(o, pl, ev.sub, ev.num)
		}
	}
	m.forgo(p, before)
}

// noteColumn remembers what one place in the rows of an array has.
func (k *Packer) noteColumn(o *code.Op, pl *place, s sub, l *leaf, sends bool) {
	switch {
	case o.Code == code.OpColumn: // numbers that are not told apart
	case s == subKind && len(l.kinds) > 0:
		pl.kind = l.kinds[len(l.kinds)-1]
	case s == subKind:
		pl.kind = l.kind
	case s == subNumber || s == subMinutes:
		all := bounds{l.nums[0], l.nums[0]}
		for _, v := range l.nums {
			k.noteNumber(o, pl, s, v)
			all = all.with(v)
		}
		if s == subNumber {
			pl.base, pl.width = all.base(), uint8(all.width())
		}
	case len(l.strs) == 0:
		k.e.memory.noteString(pl, s, l.str, sends)
	default:
		for _, str := range l.strs {
			k.e.memory.noteString(pl, s, str, sends)
		}
	}
}

func (k *Packer) noteNumber(o *code.Op, pl *place, s sub, v int64) {
	switch s {
	case subKind:
		pl.kind = uint16(v)
	case subNumber:
		pl.note(v, &k.e.time, o.Type == shape.TypeDateTime)
	case subMinutes:
		pl.minutes = int32(v)
	}
}

func (m *Memory) noteString(pl *place, s sub, b []byte, sends bool) {
	if bytes.Equal(b, pl.octets) {
		return
	}
	if s == subText {
		m.noteText(b, sends)
	}
	m.keep(pl, b)
}

// noteText enters a text and its words.
func (m *Memory) noteText(b []byte, sends bool) {
	for at, n := range editedWords(b, 0, len(b)) {
		word := b[at : at+n]
		i := m.words.enter(word, maxWords)
		if sends {
			m.wordsAt.add(&m.words, i, word, hashText(load8(word, 0), word), maxWords)
		}
	}
	if i := m.texts.enter(b, maxTexts); i >= 0 && sends {
		m.textsAt.add(&m.texts, i, b, hashText(load8(b, 0), b), maxTexts)
	}
}

// Dropped reports whether the next packed segment tells that all was forgotten.
func (m *Memory) Dropped() bool { return m.weight > maxMemory && m.latest == nil }
