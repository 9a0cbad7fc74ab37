// Package recall compresses segments by what a direction of a lane said before
// (docs/wire-format.md, section 11.8): copies of bytes of a window and of a vocabulary, and
// literals, through a range coder whose model follows what comes. It is for messages that are like
// no kind known: with a window of some earlier ones they take less than by any dictionary, and what
// a lane keeps is no more than that.
package recall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/shape/transit"
)

const (
	// Reach is how much of what was said a window has, in bytes; FarReach that of a far one.
	Reach    = 64 << 10
	FarReach = 256 << 10
	// MostFar is how many windows of a direction may get far between two syncs.
	MostFar = 64
	// MaxSegment bounds a segment, in bytes.
	MaxSegment = 16384
	// packerSlack is how much more of a window a packer keeps, so that it need not make its index
	// anew at each segment.
	packerSlack = MaxSegment
	// leastRoom is how much room a window has at least, in bytes.
	leastRoom = 256
	// longCopy is how long a copy is that a window does not get again, in bytes, unless what it
	// copies is farther than half its reach: it would be forgotten soon.
	longCopy = 100
	// mostCame is up to which length a window has segments as they travelled, in bytes: one has at
	// most that, so that its length is a byte.
	mostCame = 200
)

var vocabulary = transit.Vocabulary()

// History is what one direction of a lane said last: both ends have the same. The zero value is
// empty.
type History struct {
	said   []byte // at most what it reaches; if it is packed, that
	all    uint64 // how many bytes it has had
	tokens *tokens
	folded []byte // in place of tokens, while it rests
	// came are all segments as they travelled, each behind its length, while that is little: they
	// stand for all else while it rests. Many lanes have a message and no other.
	came []byte
	// GotFar counts the windows of the direction that got far since the last sync; nil: this one
	// must not. It is set before each segment.
	GotFar *int
	far    bool // it stays so
	packed bool // said is: it is much, and rests
}

// Far reports whether it reaches [FarReach].
func (w *History) Far() bool { return w.far }

// mayFar reports whether a segment may make it far.
func (w *History) mayFar() bool { return !w.far && w.GotFar != nil && *w.GotFar < MostFar }

// reachOf is how much of what was said a window has.
func reachOf(far bool) int {
	if far {
		return FarReach
	}
	return Reach
}

// Empty reports whether nothing was said yet.
func (w *History) Empty() bool { return w.tokens == nil && w.folded == nil && w.came == nil }

// Size is about what it takes in memory, in bytes.
func (w *History) Size() int {
	size := cap(w.said) + len(w.folded) + cap(w.came)
	if w.tokens != nil {
		size += binary.Size(*w.tokens)
	}
	return size
}

// Rest makes it as small as what it remembers.
func (w *History) Rest() {
	if w.came != nil {
		*w = History{came: w.came, far: w.far}
		return
	}
	switch {
	case w.packed:
	case len(w.said) > Reach:
		w.packSaid()
	case cap(w.said) > len(w.said)+len(w.said)/4:
		w.said = slices.Clip(bytes.Clone(w.said))
	}
	if w.tokens != nil {
		w.folded, w.tokens = w.tokens.fold(), nil
	}
}

// begin is the model for a segment.
func (w *History) begin(m *model) {
	w.wake()
	*m = *first()
	if w.tokens != nil {
		m.tokens = *w.tokens
	} else if w.folded != nil {
		m.unfold(w.folded)
	}
}

// wake reads what came once more, where that is all there is.
func (w *History) wake() {
	w.unpackSaid()
	if w.tokens != nil || w.came == nil {
		return
	}
	u := decompressors.Get().(*Decompressor)
	defer decompressors.Put(u)
	came, gotFar := w.came, w.GotFar
	*w = History{GotFar: new(int)}
	for len(came) > 0 {
		end := 1 + int(came[0])
		_, _ = u.Unpack(w, came[1:end]) // as it did before
		came = came[end:]
	}
	w.GotFar = gotFar
}

// close keeps a segment, but for the copies that the window need not get, and what the model
// learned by it. It travelled as packed.
func (w *History) close(segment, packed []byte, copies []windowPart, m *model, far bool) {
	if far && !w.far {
		w.far = true
		*w.GotFar++
	}
	if size := len(w.came) + len(packed) + 1; size <= mostCame && (w.came != nil || w.Empty()) {
		came := append(make([]byte, 0, size), w.came...)
		w.came = append(append(came, byte(len(packed))), packed...)
	} else {
		w.came = nil
	}
	at := 0
	for _, c := range copies {
		w.keep(segment[at:c.from])
		at = c.to
	}
	w.keep(segment[at:])
	if w.tokens == nil {
		w.tokens, w.folded = new(tokens), nil
	}
	*w.tokens = m.tokens
}

// keep appends what was said.
func (w *History) keep(said []byte) {
	reach := reachOf(w.far)
	if gone := len(w.said) + len(said) - reach; gone > 0 {
		w.said = w.said[:copy(w.said, w.said[gone:])]
	}
	if need := len(w.said) + len(said); need > cap(w.said) {
		w.said = append(make([]byte, 0, min(max(need+need/4, leastRoom), reach)), w.said...)
	}
	w.said = append(w.said, said...)
	w.all += uint64(len(said))
}

// windowPart is a part of a window.
type windowPart struct{ from, to int }

// spare reports whether a window need not get what a token copies at a place of a segment.
func (t token) spare(at int, far bool) bool {
	return t.length >= longCopy && int(t.dist) < at+reachOf(far)/2
}

// before is the nth byte before the end; there is always one.
func before(said []byte, n int) byte {
	if len(said) < n {
		return '>'
	}
	return said[len(said)-n]
}

// errRecall is a segment that nothing packs to.
var errRecall = errors.New("malformed segment by a window")

// Decompressor is the space that Unpack takes.
type Decompressor struct {
	model  model
	coder  coder
	copies []windowPart
	said   []byte // what counts of the window, and the segment behind it
}

var decompressors = sync.Pool{New: func() any { return new(Decompressor) }}

// Unpack gives the segment; it holds until the next call. After an error the window is as it was.
// Work and memory are bounded by [MaxSegment] whatever comes.
func (u *Decompressor) Unpack(w *History, packed []byte) (segment []byte, err error) {
	far, whole := len(packed) > 1 && packed[0] == 0, packed
	if far {
		packed = packed[1:]
	}
	size, n := binary.Uvarint(packed)
	switch {
	case n <= 0 || size == 0 || size > MaxSegment || n > 1 && packed[n-1] == 0:
		return nil, fmt.Errorf("%w: its size", errRecall)
	case packed[len(packed)-1] == 0 && len(packed) > n:
		return nil, fmt.Errorf("%w: zeros at its end", errRecall)
	}
	w.begin(&u.model)
	if far && !w.mayFar() {
		return nil, fmt.Errorf("%w: it must not get far", errRecall)
	}
	far = far || w.far
	u.said = append(u.said[:0], w.said...)
	begin := len(u.said)
	u.coder.read(packed[n:])
	if err := u.tokens(begin+int(size), far); err != nil {
		return nil, err
	}
	segment = u.said[begin:]
	w.close(segment, whole, u.copies, &u.model, far)
	return segment, nil
}

// tokens appends what tokens stand for, up to an end.
func (u *Decompressor) tokens(end int, far bool) error {
	said, m, c := u.said, &u.model, &u.coder
	begin := len(said)
	u.copies = u.copies[:0]
	for len(said) < end {
		one, two := before(said, 1), before(said, 2)
		t := m.token(c, one, token{})
		if t.length == 0 {
			said = append(said, m.literal(c, one, two, 0))
			continue
		}
		at := len(said) - int(t.dist)
		if t.dist == 0 || at < -len(vocabulary) || int(t.length) > end-len(said) {
			return fmt.Errorf("%w: a copy of nothing", errRecall)
		}
		if from := len(said) - begin; t.spare(from, far) {
			u.copies = append(u.copies, windowPart{from, from + int(t.length)})
		}
		for range t.length {
			if at < 0 {
				said = append(said, vocabulary[len(vocabulary)+at])
			} else {
				said = append(said, said[at])
			}
			at++
		}
	}
	u.said = said
	if len(c.in) > 0 {
		return fmt.Errorf("%w: bytes are left over", errRecall)
	}
	return nil
}
