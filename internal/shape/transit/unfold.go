package transit

import (
	"encoding/binary"
	"fmt"

	"github.com/hhfr/hhfr/internal/bin"
)

// unfolder takes a folded form apart.
type unfolder struct {
	in     bin.Cursor
	flat   []byte // the folded form with the tails of its lists
	counts []int  // nodes in each list, in the order in which the lists begin
	lists  []list // that have not ended, the innermost last
	single bool   // the next node belongs to an array or an optional, and to no list
	text   bool   // a text stands last, and goes on
	roots  int    // nodes in no list
}

type list struct {
	mark  byte
	start int // of its nodes in flat
	index int // of its count
}

// unfold gives back the serialization that was folded, of at most [MaxOctets]. Whether it is a
// shape is for others to say.
func unfold(folded []byte) ([]byte, error) {
	u := unfolder{in: bin.NewCursor(folded, 0), flat: make([]byte, 0, len(folded)+len(folded)/2)}
	slots := u.in.Uvarint()
	for u.in.Len() > 0 && len(u.flat) <= MaxOctets {
		u.token(u.in.U8())
	}
	switch {
	case u.in.Err() != nil:
		return nil, &Error{Code: Malformed, Err: u.in.Err()}
	case len(u.flat) > MaxOctets:
		return nil, &Error{Code: TooLarge}
	case len(u.lists) > 0 || u.roots != 1 || u.single:
		return nil, &Error{Code: Malformed, Err: fmt.Errorf("%d nodes, %d lists that do not end", u.roots,
			len(u.lists))}
	}
	return u.write(binary.AppendUvarint([]byte{serialVersion}, slots))
}

// token takes the next mark, or byte of a text.
func (u *unfolder) token(c byte) {
	if !isMark(c) {
		if !u.text {
			u.begin()
		}
		u.text = true
		u.flat = append(u.flat, c)
		return
	}
	text := u.text
	u.text = false
	switch c {
	case markApart:
		u.flat = append(u.flat, c)
	case markEnd, markClose:
		u.end(c, text)
	default:
		u.begin()
		u.flat = append(u.flat, c)
		u.fields(c)
	}
}

// begin counts a node where it begins.
func (u *unfolder) begin() {
	switch {
	case u.single:
		u.single = false
	case len(u.lists) > 0:
		u.counts[u.lists[len(u.lists)-1].index]++
	default:
		u.roots++
	}
}

// fields takes what stands behind a mark.
func (u *unfolder) fields(mark byte) {
	uvarints, octets := 0, 0
	switch mark {
	case markElement, markAttribute, markSequence, markChoice:
		u.lists = append(u.lists, list{mark, len(u.flat), len(u.counts)})
		u.counts = append(u.counts, 0)
		if len(u.lists) > maxLevels+1 {
			u.fail("lists in each other")
		}
	case markSlot, markAgain:
		uvarints = 1
	case markArray:
		uvarints, u.single = 2, true
	case markOptional, markRows:
		u.single = true
	case markValue:
		octets = 2
	case markOther:
		octets, u.single = 1, true
	default:
		if mark < markTypes {
			u.fail("mark %#x", mark)
		}
	}
	for range uvarints {
		u.flat = binary.AppendUvarint(u.flat, u.in.Uvarint())
	}
	u.flat = append(u.flat, u.in.Take(octets)...)
}

// end ends the innermost list; text: what stands last in it is a text.
func (u *unfolder) end(mark byte, text bool) {
	if len(u.lists) == 0 || u.single {
		u.fail("end of no list")
		return
	}
	l := u.lists[len(u.lists)-1]
	u.lists = u.lists[:len(u.lists)-1]
	if mark == markClose {
		from := len(u.flat)
		var ok bool
		if u.flat, ok = tail(u.flat, l.mark, u.flat[l.start:]); !ok {
			u.fail("tail of a list that has none")
			return
		}
		if !text {
			u.counts[l.index]++
		}
		if l.mark == markElement && u.flat[from+2] == markAgain {
			u.counts[l.index] += 2 // the prefix, and what is behind it
		}
	}
	u.flat = append(u.flat, markEnd)
}

func (u *unfolder) fail(format string, args ...any) { u.in.Fail(fmt.Errorf(format, args...)) }

// write appends the nodes of the flat form, as a serialization has them.
func (u *unfolder) write(out []byte) ([]byte, error) {
	u.in = bin.NewCursor(u.flat, 0)
	untils := make([]byte, 1, maxLevels)
	untils[0] = untilLine
	index := 0
	for at := 0; u.in.Len() > 0 && len(out) <= MaxOctets; at = len(u.flat) - u.in.Len() {
		until := untils[len(untils)-1]
		switch c := u.in.U8(); c {
		case markEnd:
			untils = untils[:len(untils)-1]
		case markApart:
		case markElement, markAttribute, markSequence, markChoice:
			kind := map[byte]byte{markElement: nodeElement, markAttribute: nodeAttribute, markSequence: nodeSequence,
				markChoice: nodeChoice}[c]
			switch c {
			case markElement:
				until = untilTag
			case markAttribute:
				until = untilQuote
			}
			untils = append(untils, until)
			out = binary.AppendUvarint(append(out, kind), uint64(u.counts[index]))
			index++
		case markArray:
			out = binary.AppendUvarint(append(out, nodeArray), u.in.Uvarint())
			out = binary.AppendUvarint(out, u.in.Uvarint())
		case markRows:
			out = append(out, nodeArray, 0, 0)
		case markOptional:
			out = append(out, nodeOptional)
		case markSlot:
			out = binary.AppendUvarint(append(out, nodeSlot), u.in.Uvarint())
		case markAgain:
			out = binary.AppendUvarint(append(out, nodeAgain), u.in.Uvarint())
		case markValue:
			out = append(append(out, nodeValue), u.in.Take(2)...)
		case markOther:
			out = append(out, u.in.Take(1)...)
		default:
			if isMark(c) {
				out = append(out, nodeValue, c-markTypes, until)
				continue
			}
			end := at
			for end < len(u.flat) && !isMark(u.flat[end]) {
				end++
			}
			u.in.Take(end - at - 1)
			out = bin.AppendBytes(append(out, nodeText), u.flat[at:end])
		}
	}
	if len(out) > MaxOctets {
		return nil, &Error{Code: TooLarge}
	}
	return out, nil
}
