package deflate

import "math/bits"

// The alphabets of RFC 1951, section 3.2.
const (
	endOfBlock  = 256
	literals    = 286
	distances   = 30
	codeLengths = 19
)

// lengthOrder is in which order the lengths of the codes for code lengths are written.
var lengthOrder = [codeLengths]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// fixedLiterals and fixedDistances are the fixed codes.
var fixedLiterals, fixedDistances code

func init() {
	for c := range fixedLiterals.lens {
		switch {
		case c >= 280:
			fixedLiterals.lens[c] = 8
		case c >= 256:
			fixedLiterals.lens[c] = 7
		case c >= 144:
			fixedLiterals.lens[c] = 9
		default:
			fixedLiterals.lens[c] = 8
		}
		fixedDistances.lens[c] = 5
	}
	fixedLiterals.assign(len(fixedLiterals.lens))
	fixedDistances.assign(distances)
}

// split gives the code of a length or a distance, counted from 0, and the extra bits behind it: the
// code has its two or, with wide, three highest bits and where they stand.
func split(value, wide uint) (code, extra uint, n uint8) {
	n = uint8(max(0, bits.Len(value)-1-int(wide)))
	return uint(n)<<wide + value>>n, value & (1<<n - 1), n
}

func splitLength(length uint16) (code, extra uint, n uint8) {
	if length == maxMatch {
		return literals - 1, 0, 0
	}
	code, extra, n = split(uint(length-minMatch), 2)
	return code + endOfBlock + 1, extra, n
}

func splitDistance(distance uint16) (code, extra uint, n uint8) { return split(uint(distance-1), 1) }

// symbol is a literal byte, whose distance is 0, or the length and distance of a match.
type symbol struct{ value, distance uint16 }

// lengthRun is a symbol of the alphabet of code lengths, with its extra bits.
type lengthRun struct{ code, extra, n uint8 }

// blockWriter writes blocks.
type blockWriter struct {
	out  []byte
	bits uint64 // that wait for the byte to be full
	wait uint   // how many

	symbols             []symbol // of the block at hand
	most                int      // how many a block has at most
	extra               int      // bits behind their codes
	literals, distances tree
	codeLengths         tree
	runs                []lengthRun // code lengths of the first two
}

func (w *blockWriter) begin(dst []byte, most int) {
	w.out, w.bits, w.wait, w.most = dst, 0, 0, most
	w.reset()
}

func (w *blockWriter) reset() {
	w.symbols, w.runs, w.extra = w.symbols[:0], w.runs[:0], 0
	clear(w.literals.freq[:])
	clear(w.distances.freq[:])
	clear(w.codeLengths.freq[:])
	w.literals.freq[endOfBlock] = 1
}

// add adds a literal byte, or a match, to the block; true: the block is full.
func (w *blockWriter) add(value, distance int) (full bool) {
	s := symbol{uint16(value), uint16(distance)}
	w.symbols = append(w.symbols, s)
	if distance == 0 {
		w.literals.freq[value]++
	} else {
		length, _, n := splitLength(s.value)
		d, _, m := splitDistance(s.distance)
		w.literals.freq[length]++
		w.distances.freq[d]++
		w.extra += int(n + m)
	}
	return len(w.symbols) == w.most
}

// put writes the n lowest bits of value, which has no others.
func (w *blockWriter) put(value uint, n uint8) {
	w.bits |= uint64(value) << w.wait
	for w.wait += uint(n); w.wait >= 8; w.wait -= 8 {
		w.out = append(w.out, byte(w.bits))
		w.bits >>= 8
	}
}

// align fills the byte at hand.
func (w *blockWriter) align() { w.put(0, uint8(-w.wait&7)) }

func (w *blockWriter) putCode(c *code, symbol uint) { w.put(uint(c.codes[symbol]), c.lens[symbol]) }

// writeBlock writes the block at hand in the form that is shortest. plain is what it stands for,
// which may be stored as it is if stores.
func (w *blockWriter) writeBlock(plain []byte, stores, last bool) {
	w.literals.build(literals, 15)
	w.distances.build(distances, 15)
	w.addRuns(w.literals.lens[:w.literals.last+1])
	w.addRuns(w.distances.lens[:w.distances.last+1])
	w.codeLengths.build(codeLengths, 7)
	own := codeLengths
	for own > 4 && w.codeLengths.lens[lengthOrder[own-1]] == 0 {
		own--
	}
	dynamic := 3 + 5 + 5 + 4 + 3*own + w.codeLengths.size(&w.codeLengths.code) +
		w.literals.size(&w.literals.code) + w.distances.size(&w.distances.code) + w.extra
	for _, r := range w.runs {
		dynamic += int(r.n)
	}
	fixed := 3 + w.literals.size(&fixedLiterals) + w.distances.size(&fixedDistances) + w.extra
	dynamic, fixed = (dynamic+7)/8, (fixed+7)/8
	final := uint(0)
	if last {
		final = 1
	}
	switch {
	case stores && len(plain)+4 <= min(dynamic, fixed):
		w.put(final, 3)
		w.align()
		n := uint(len(plain))
		w.put(n, 16)
		w.put(n^0xffff, 16)
		w.out = append(w.out, plain...)
	case fixed <= dynamic:
		w.put(1<<1|final, 3)
		w.writeSymbols(&fixedLiterals, &fixedDistances)
	default:
		w.put(2<<1|final, 3)
		w.writeCodes(own)
		w.writeSymbols(&w.literals.code, &w.distances.code)
	}
	w.reset()
	if last {
		w.align()
	}
}

// writeCodes writes the codes of a block, by their lengths, own of which are those of the codes for
// code lengths.
func (w *blockWriter) writeCodes(own int) {
	w.put(uint(w.literals.last-endOfBlock), 5)
	w.put(uint(w.distances.last), 5)
	w.put(uint(own-4), 4)
	for _, c := range lengthOrder[:own] {
		w.put(uint(w.codeLengths.lens[c]), 3)
	}
	for _, r := range w.runs {
		w.putCode(&w.codeLengths.code, uint(r.code))
		w.put(uint(r.extra), r.n)
	}
}

func (w *blockWriter) writeSymbols(literals, distances *code) {
	for _, s := range w.symbols {
		if s.distance == 0 {
			w.putCode(literals, uint(s.value))
			continue
		}
		c, extra, n := splitLength(s.value)
		w.putCode(literals, c)
		w.put(extra, n)
		c, extra, n = splitDistance(s.distance)
		w.putCode(distances, c)
		w.put(extra, n)
	}
	w.putCode(literals, endOfBlock)
}

// addRuns adds the lengths of a code in their own alphabet (RFC 1951, section 3.2.7).
func (w *blockWriter) addRuns(lens []uint8) {
	for at := 0; at < len(lens); {
		length, n := lens[at], 1
		for at+n < len(lens) && lens[at+n] == length {
			n++
		}
		at += n
		for first := length != 0; n > 0; first = false {
			r, k := lengthRun{code: length}, 1
			switch {
			case first, n < 3:
			case length != 0:
				k = min(n, 6)
				r = lengthRun{16, uint8(k - 3), 2}
			case n <= 10:
				k = n
				r = lengthRun{17, uint8(k - 3), 3}
			default:
				k = min(n, 138)
				r = lengthRun{18, uint8(k - 11), 7}
			}
			w.runs = append(w.runs, r)
			w.codeLengths.freq[r.code]++
			n -= k
		}
	}
}
