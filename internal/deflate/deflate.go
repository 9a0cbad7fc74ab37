// Package deflate codes bytes as zlib does, bit for bit: what zlib wrote need not be kept beside
// what it wrote it of, if it is known what zlib was told.
//
// What zlib writes follows from its input and [Params] alone, unless the writer flushed in between.
// Its versions from 1.2 on write the same; its faster descendants do not.
package deflate

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
)

// Params are what zlib is told. Others than these are not supported.
type Params struct {
	Level  int // 1 to 9
	Window int // binary logarithm of the window: 9 to 15
	Memory int // memLevel: 1 to 9
}

func (p Params) areValid() bool {
	return p.Level >= 1 && p.Level <= 9 && p.Window >= 9 && p.Window <= 15 && p.Memory >= 1 && p.Memory <= 9
}

// MaxPlain is the longest input, in bytes.
const MaxPlain = 1 << 20

const (
	minMatch = 3
	maxMatch = 258
	// minAhead is how much zlib has in its window behind the place at hand, unless the input ends.
	minAhead = maxMatch + minMatch + 1
	// tooFar is the distance beyond which a match of minMatch costs more than literals.
	tooFar = 4096
	// workFree and workPerByte bound the comparisons: an input that somebody contrived has zlib
	// make 4,096 for each byte, XML up to 4 at level 6, and 16 at level 9.
	workFree    = 1 << 16
	workPerByte = 64
)

// searches are how hard zlib looks for a match, by level: at one of good length less, at one of
// lazy length not again (levels below 4: it enters none of the places in a longer one), at one of
// nice length no further; chain is how many places it looks at.
var searches = [...]struct{ good, lazy, nice, chain int }{
	1: {4, 4, 8, 4}, {4, 5, 16, 8}, {4, 6, 32, 32},
	{4, 4, 16, 16}, {8, 16, 32, 32}, {8, 16, 128, 128}, {8, 32, 128, 256}, {32, 128, 258, 1024}, {32, 258, 258, 4096},
}

// encoder is what one input is coded with. Places are numbered on from one input to the next, so
// that nothing must be cleared: those of inputs before are below origin.
type encoder struct {
	heads  [1 << 16]uint32 // last place by hash
	before [1 << 15]uint32 // place before by place, modulo the window
	origin uint32
	blockWriter

	in          []byte
	p           Params
	window      int
	start       int // of what zlib has in memory, which is two windows
	filled      int // how much of the input zlib has read
	shift, mask uint32
	work        int // how many comparisons are left; below 0: too many
	block       int // where the block at hand begins
	matched     int // length of the match at hand
	matchedAt   int // where it was found
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// Append appends what zlib makes of in; false: it is too long, would take too much work, or these
// parameters are not supported.
func Append(dst, in []byte, p Params) ([]byte, bool) {
	if !p.areValid() || len(in) > MaxPlain {
		return dst, false
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.begin(dst, in, p)
	if p.Level < 4 {
		e.fast()
	} else {
		e.slow()
	}
	e.endBlock(len(in), true)
	dst, e.in, e.out = e.out, nil, nil
	if e.origin += uint32(len(in)) + 1; e.origin > math.MaxUint32/2 {
		clear(e.heads[:])
		e.origin = 0
	}
	return dst, e.work >= 0
}

func (e *encoder) begin(dst, in []byte, p Params) {
	hash := uint32(p.Memory + 7)
	e.in, e.p, e.window, e.shift, e.mask = in, p, 1<<p.Window, (hash+2)/3, 1<<hash-1
	e.start, e.filled, e.block, e.matched, e.matchedAt = 0, 0, 0, minMatch-1, 0
	e.work = workFree + workPerByte*len(in)
	e.blockWriter.begin(dst, 1<<(p.Memory+6)-1)
}

// ahead is how much of the input zlib has read behind a place. It reads more, and forgets the older
// half of what it has in memory, as that gets short.
func (e *encoder) ahead(at int) int {
	for e.filled-at < minAhead {
		if at-e.start >= 2*e.window-minAhead {
			e.start += e.window
		}
		if e.filled == len(e.in) {
			break
		}
		e.filled = min(len(e.in), e.start+2*e.window)
	}
	return e.filled - at
}

// insert enters a place, and returns the last one before it that has the same hash, which may be
// unknown to zlib.
func (e *encoder) insert(at int) (before uint32) {
	h := (uint32(e.in[at])<<(2*e.shift) ^ uint32(e.in[at+1])<<e.shift ^ uint32(e.in[at+2])) & e.mask
	before = e.heads[h]
	e.before[at&(e.window-1)] = before
	e.heads[h] = e.origin + uint32(at)
	return before
}

// reach is the lowest place that a match at a place may have, and one less than that beyond the
// first place that is looked at; the first one in memory is none to zlib.
func (e *encoder) reach(at, less int) uint32 {
	return e.origin + uint32(max(e.start+1, at-(e.window-minAhead)+less))
}

// search looks for a match longer than best, which is found already: at a place, of at most ahead
// bytes, beginning with a place of the same hash. It returns its length, or best.
func (e *encoder) search(at int, from uint32, best, ahead int) int {
	s := &searches[e.p.Level]
	chain, nice := s.chain, min(s.nice, ahead)
	if best >= s.good {
		chain /= 4
	}
	if best >= ahead {
		return ahead
	}
	here := e.in[at : at+min(maxMatch, ahead)]
	for reach := e.reach(at, 1); ; {
		there := e.in[from-e.origin:][:len(here)]
		e.work--
		if there[best] == here[best] && there[best-1] == here[best-1] && there[0] == here[0] && there[1] == here[1] {
			n := equal(here, there)
			e.work -= n / 8
			if n > best {
				e.matchedAt, best = int(from-e.origin), n
				if n >= nice {
					break
				}
			}
		}
		from = e.before[int(from-e.origin)&(e.window-1)]
		if chain--; from < reach || chain == 0 {
			break
		}
	}
	return best
}

// equal is how many bytes two slices of one length have in common.
func equal(a, b []byte) (n int) {
	for ; n+8 <= len(a); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// fast is how levels 1 to 3 go over the input: they take the first match.
func (e *encoder) fast() {
	for at := 0; e.work >= 0; {
		ahead := e.ahead(at)
		if ahead == 0 {
			return
		}
		n := 0
		if ahead >= minMatch {
			if from := e.insert(at); from >= e.reach(at, 0) {
				n = e.search(at, from, minMatch-1, ahead)
			}
		}
		full := false
		if n < minMatch {
			full = e.add(int(e.in[at]), 0)
			at++
		} else {
			full = e.add(n, at-e.matchedAt)
			end := at + n
			if n <= searches[e.p.Level].lazy && ahead-n >= minMatch {
				for at++; at < end; at++ {
					e.insert(at)
				}
			}
			at = end
		}
		if full {
			e.endBlock(at, false)
		}
	}
}

// slow is how levels 4 to 9 go over the input: they take a match if the next place has no longer
// one.
func (e *encoder) slow() {
	pending := false // the byte before is not written yet: it may begin a match
	at := 0
	for e.work >= 0 {
		ahead := e.ahead(at)
		if ahead == 0 {
			break
		}
		last, lastAt := e.matched, e.matchedAt
		e.matched = minMatch - 1
		if ahead >= minMatch {
			if from := e.insert(at); from >= e.reach(at, 0) && last < searches[e.p.Level].lazy {
				e.matched = e.search(at, from, last, ahead)
				if e.matched == minMatch && at-e.matchedAt > tooFar {
					e.matched = minMatch - 1
				}
			}
		}
		switch {
		case last >= minMatch && e.matched <= last:
			full := e.add(last, at-1-lastAt)
			end, entered := at-1+last, at+ahead-minMatch
			for at++; at < end; at++ {
				if at <= entered {
					e.insert(at)
				}
			}
			pending, e.matched = false, minMatch-1
			if full {
				e.endBlock(at, false)
			}
			continue
		case pending:
			if e.add(int(e.in[at-1]), 0) {
				e.endBlock(at, false)
			}
		}
		pending = true
		at++
	}
	if pending {
		e.add(int(e.in[len(e.in)-1]), 0)
	}
}

// endBlock writes the block that ends before a place.
func (e *encoder) endBlock(end int, last bool) {
	e.writeBlock(e.in[e.block:end], e.block >= e.start, last) // else zlib does not have all of it any more
	e.block = end
}
