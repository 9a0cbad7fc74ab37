package transit

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/hhfr/hhfr/internal/bin"
)

// Kinds of nodes of a serialization (docs/wire-format.md, section 9).
const (
	nodeText = iota
	nodeValue
	nodeSlot
	nodeAgain
	nodeSequence
	nodeElement
	nodeAttribute
	nodeArray
	nodeOptional
	nodeChoice
)

// Marks of the folded form (section 4.1.1). They are bytes that XML does not know.
const (
	markElement   = 0x01
	markAttribute = 0x02
	markSequence  = 0x03
	markChoice    = 0x04
	markEnd       = 0x05 // of the list begun last
	markClose     = 0x06 // same, behind its tail
	markArray     = 0x07
	markOptional  = 0x08
	markSlot      = 0x0B
	markAgain     = 0x0C
	markValue     = 0x0E // of a type or an until that are written
	markApart     = 0x0F // between two texts
	markRows      = 0x10 // an array from 0 on, without limit
	markOther     = 0x11 // another kind of node, written, that has one node
	markTypes     = 0x13 // and the type: a value that ends where values there do
)

const (
	serialVersion = 1
	valueTypes    = 13 // have marks; of others the type is written
	// maxLevels bounds the depth of a tree, as internal/shape does.
	maxLevels = 200
)

// Where values end, by what is around them.
const (
	untilTag   = 0 // in elements
	untilQuote = 1 // in attributes
	untilLine  = 3 // in neither: in a head
)

func isMark(c byte) bool { return c < 0x20 && c != '\t' && c != '\n' && c != '\r' }

// isDelimiter tells what ends the name of an element.
func isDelimiter(c byte) bool { return c <= ' ' || c == '/' || c == '>' }

// folder folds one serialization.
type folder struct {
	in  bin.Cursor
	out []byte
}

// fold writes a serialization with marks in place of what a reader knows: counts, lengths, and the
// end tags of elements. It is false if the bytes are no serialization, or have marks in their
// texts.
func fold(octets []byte) ([]byte, bool) {
	f := folder{in: bin.NewCursor(octets, 0), out: make([]byte, 0, len(octets))}
	version := f.in.U8()
	f.uvarint()
	f.node(untilLine, 0)
	return f.out, version == serialVersion && f.in.Len() == 0 && f.in.Err() == nil
}

var errFold = errors.New("no folded form")

func (f *folder) uvarint() { f.out = binary.AppendUvarint(f.out, f.in.Uvarint()) }

// node folds a node, and reports whether a text stands last; until: where values there end.
func (f *folder) node(until byte, level int) (text bool) {
	if level > maxLevels {
		f.in.Fail(errFold)
	}
	switch kind := f.in.U8(); kind {
	case nodeText:
		t := f.in.Bytes(uint64(f.in.Len()))
		if len(t) == 0 || bytes.ContainsFunc(t, func(r rune) bool { return r < 0x20 && isMark(byte(r)) }) {
			f.in.Fail(errFold)
		}
		f.out = append(f.out, t...)
		return true
	case nodeValue:
		if t, u := f.in.U8(), f.in.U8(); t < valueTypes && u == until {
			f.out = append(f.out, markTypes+t)
		} else {
			f.out = append(f.out, markValue, t, u)
		}
	case nodeSlot:
		f.out = append(f.out, markSlot)
		f.uvarint()
	case nodeAgain:
		f.out = append(f.out, markAgain)
		f.uvarint()
	case nodeSequence:
		f.list(markSequence, until, level)
	case nodeElement:
		f.list(markElement, untilTag, level)
	case nodeAttribute:
		f.list(markAttribute, untilQuote, level)
	case nodeArray:
		if least, most := f.in.Uvarint(), f.in.Uvarint(); least == 0 && most == 0 {
			f.out = append(f.out, markRows)
		} else {
			f.out = binary.AppendUvarint(binary.AppendUvarint(append(f.out, markArray), least), most)
		}
		return f.node(until, level+1)
	case nodeOptional:
		f.out = append(f.out, markOptional)
		return f.node(until, level+1)
	case nodeChoice:
		f.list(markChoice, until, level)
	default:
		f.out = append(f.out, markOther, kind)
		return f.node(until, level+1)
	}
	return false
}

func (f *folder) list(mark, until byte, level int) {
	f.out = append(f.out, mark)
	start, text := len(f.out), false
	for range f.in.Count(uint64(f.in.Len())) {
		if f.in.Err() != nil {
			return
		}
		at := len(f.out)
		before := text
		text = f.node(until, level+1)
		if before && at < len(f.out) && !isMark(f.out[at]) {
			f.out = append(f.out, 0)
			copy(f.out[at+1:], f.out[at:])
			f.out[at] = markApart
		}
	}
	if end, ok := tail(nil, mark, f.out[start:]); ok && len(f.out)-start > len(end) && bytes.HasSuffix(f.out, end) {
		f.out = append(f.out[:len(f.out)-len(end)], markClose)
		return
	}
	f.out = append(f.out, markEnd)
}

// tail appends what a list ends with if it ends with [markClose]: an element with its end tag, an
// attribute with the first quote of its first text. ok is false if no list of its kind ends so.
func tail(dst []byte, mark byte, list []byte) (end []byte, ok bool) {
	n := 0
	switch {
	case mark == markAttribute:
		for ; n < len(list) && !isMark(list[n]); n++ {
			if list[n] == '"' || list[n] == '\'' {
				return append(dst, list[n]), true
			}
		}
		return dst, false
	case mark != markElement || len(list) == 0 || list[0] != '<':
		return dst, false
	}
	dst = append(dst, "</"...)
	name := list[1:]
	if len(name) > 0 && (name[0] == markSlot || name[0] == markAgain) {
		_, size := binary.Uvarint(name[1:])
		if size <= 0 {
			return dst, false
		}
		dst = append(append(dst, markAgain), name[1:1+size]...)
		name = name[1+size:]
	}
	for n < len(name) && !isDelimiter(name[n]) {
		n++
	}
	return append(append(dst, name[:n]...), '>'), true
}
