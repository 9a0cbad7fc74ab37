package binary

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape/program"
)

const (
	// fewTries is how many shapes are tried on a body before its markup is looked at.
	fewTries = 8
	// maxMarks bounds the marks that a book remembers, about 80 bytes each.
	maxMarks = bookShapes
	// nearTags is how many tags back a tag is looked for that comes again.
	nearTags = 8
)

const fnvBasis, fnvPrime = 14695981039346656037, 1099511628211 // FNV-1a

// markOf tells bodies apart whose shapes begin alike: it is a hash of their start tags, with names
// of attributes and with namespaces. Tags that come again soon, as those of rows do, do not count.
func markOf(body []byte) uint64 {
	var near [nearTags]uint64
	sum, tags := uint64(fnvBasis), 0
	for {
		at := bytes.IndexByte(body, '<')
		if at < 0 {
			return sum
		}
		var tag uint64
		if tag, body = markTag(body[at+1:]); tag == 0 {
			continue
		}
		again := false
		for _, t := range near {
			again = again || t == tag
		}
		if !again {
			near[tags%nearTags] = tag
			tags++
			sum = (sum ^ tag) * fnvPrime
		}
	}
}

// markTag gives the hash of a tag from its name on, 0 of an end tag, and what is behind it.
func markTag(text []byte) (sum uint64, rest []byte) {
	if len(text) > 0 && text[0] == '/' {
		return 0, text
	}
	sum = fnvBasis
	name, quote, space := 0, byte(0), false // of an attribute; space: its value is a namespace
	for i, c := range text {
		switch {
		case c == quote:
			quote = 0
		case quote != 0 && !space:
			continue
		case quote != 0:
		case c == '>':
			return sum, text[i:]
		case c == '"' || c == '\'':
			quote, space = c, bytes.HasPrefix(text[name:i], []byte("xmlns"))
		case c <= ' ':
			name = i + 1
		}
		sum = (sum ^ uint64(c)) * fnvPrime
	}
	return sum, nil
}

// What a mark stands for where no shape is known.
var (
	cameOnce  = Fingerprint{}
	cameAgain = Fingerprint{1}
)

// marked gives what bodies of a mark were cut by last; nil if that is not known.
func (b *Book) marked(mark uint64) *program.Program {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.known[b.marks[mark]]; p != nil && !p.retired {
		return p.program
	}
	return nil
}

// again notes that a body of a mark goes as text, and reports whether one did so before, once.
func (b *Book) again(mark uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	fp, came := b.marks[mark]
	switch {
	case !came:
		b.keepMark(mark, cameOnce)
	case fp == cameOnce:
		b.keepMark(mark, cameAgain)
		return true
	}
	return false
}

// mark notes what a body of a mark was cut by.
func (b *Book) mark(mark uint64, by *program.Program) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keepMark(mark, by.Shape().Fingerprint())
}

// keepMark has a mark stand for a shape. Where there are too many any other goes: of kinds that
// take turns the one used longest ago is the next.
func (b *Book) keepMark(mark uint64, fp Fingerprint) {
	if b.marks == nil {
		b.marks = map[uint64]Fingerprint{}
	}
	b.marks[mark] = fp
	for old := range b.marks {
		if len(b.marks) <= maxMarks {
			break
		}
		delete(b.marks, old)
	}
}
