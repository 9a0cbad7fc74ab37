package recall

import (
	"encoding/binary"
	"math"
	"sync"
)

const (
	hashBits = 16
	tries    = 24  // how many earlier places are looked at
	enough   = 128 // a copy of that length is taken without looking further
)

// placeIndex finds earlier places of bytes.
type placeIndex struct {
	head  [1 << hashBits]int32 // place + 1
	head3 [1 << 13]int32
	prev  []int32
	// was3 is what head3 had before each place from mark on was added.
	was3 []int32
	mark int
}

func hash(b []byte) uint32 { return binary.LittleEndian.Uint32(b) * 0x9E3779B1 >> (32 - hashBits) }
func hash3(b []byte) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16) * 0x9E3779B1 >> (32 - 13)
}

func (x *placeIndex) add(b []byte, to int) {
	for i := len(x.prev); i < to && i+4 <= len(b); i++ {
		h := hash(b[i:])
		x.prev = append(x.prev, x.head[h])
		x.head[h] = int32(i + 1)
		at3 := &x.head3[hash3(b[i:])]
		if i >= x.mark {
			x.was3 = append(x.was3, *at3)
		}
		*at3 = int32(i + 1)
	}
}

// remember has what is added from a place on forgotten again.
func (x *placeIndex) remember(from int) { x.mark, x.was3 = from, x.was3[:0] }

// forget takes out what was added since. So what was only tried leaves nothing.
func (x *placeIndex) forget(b []byte) {
	for i := len(x.prev) - 1; i >= x.mark; i-- {
		x.head[hash(b[i:])], x.head3[hash3(b[i:])] = x.prev[i], x.was3[i-x.mark]
	}
	x.prev = x.prev[:min(x.mark, len(x.prev))]
}

func (x *placeIndex) reset() {
	clear(x.head[:])
	clear(x.head3[:])
	x.prev = x.prev[:0]
}

var ofVocabulary = sync.OnceValue(func() *placeIndex {
	x := &placeIndex{mark: math.MaxInt}
	x.add(vocabulary, len(vocabulary))
	return x
})

// Compressor is the space that Pack takes.
type Compressor struct {
	index  placeIndex
	said   []byte // what the window of has had, up to the byte all of it, and the segment behind it
	of     *History
	all    uint64
	model  model
	coder  coder
	steps  []step
	found  []token
	out    []byte
	copies []windowPart
	far    bool // the window is, behind the segment
}

// step is the cheapest way found so far to a place.
type step struct {
	price uint32
	token token // that leads there
	next  token // of the cheapest way of all: that goes on from there
	dists [repeats]uint32
	past  uint8
}

// Pack gives a segment as it travels, and adds it to the window; it is false, and nothing is
// changed, if that is not shorter. It may be so much longer: what is like nothing before is in the
// window for what follows.
func (p *Compressor) Pack(w *History, segment []byte, longer int) (packed []byte, done bool) {
	packed = p.code(w, segment)
	if len(packed)+1 >= len(segment)+longer {
		return nil, false
	}
	w.close(segment, packed, p.copies, &p.model, p.far)
	return packed, true
}

// Size is how many bytes Pack would give. It changes nothing.
func (p *Compressor) Size(w *History, segment []byte) int { return len(p.code(w, segment)) }

// code gives a segment as it travels. What the window would get, and learn, is in p.
func (p *Compressor) code(w *History, segment []byte) []byte {
	begin := p.look(w, segment)
	said, dst := p.said, p.out[:0]
	// As long as little was said the reach makes no difference.
	if p.far = w.far || w.mayFar() && len(w.said)+len(segment) > Reach/2; p.far && !w.far {
		dst = append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(segment)))
	coded := len(dst)
	c, m := &p.coder, &p.model
	c.write(dst)
	p.copies = p.copies[:0]
	for at := begin; at < len(said); {
		t := p.steps[at-begin].next
		one, two := before(said[:at], 1), before(said[:at], 2)
		m.token(c, one, t)
		if t.length == 0 {
			m.literal(c, one, two, said[at])
			at++
		}
		if from := at - begin; t.spare(from, p.far) {
			p.copies = append(p.copies, windowPart{from, from + int(t.length)})
		}
		at += int(t.length)
	}
	dst = c.finish(coded)
	p.out, c.out = dst, nil
	p.index.forget(said)
	p.said = said[:begin]
	return dst
}

// look plans how a segment travels, which stands behind what the window has; begin is its place.
func (p *Compressor) look(w *History, segment []byte) (begin int) {
	w.begin(&p.model)
	news := w.all - p.all
	if p.of != w || news > uint64(len(w.said)) || uint64(len(p.said))+news > uint64(reachOf(w.far)+packerSlack) {
		p.index.reset()
		p.of, p.said = w, append(p.said[:0], w.said...)
	} else {
		p.said = append(p.said, w.said[uint64(len(w.said))-news:]...)
	}
	p.all, begin = w.all, len(p.said)
	p.said = append(p.said, segment...)
	p.index.remember(max(0, begin-3)) // a place is found by the four bytes there
	p.plan(p.said, begin, begin-len(w.said))
	return begin
}

// common is how many bytes from two places on are the same.
func common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// matches lists copies that fit at a place, longer ones from farther.
func (p *Compressor) matches(said []byte, at, from int) []token {
	p.found = p.found[:0]
	rest := said[at:]
	if len(rest) < leastMatch {
		return p.found
	}
	longest := leastMatch - 1
	look := func(place, dist int, b []byte) bool {
		if longest < len(rest) && longest < len(b) && b[longest] != rest[longest] {
			return false
		}
		if n := common(b, rest); n > longest {
			longest = n
			p.found = append(p.found, token{uint32(n), uint32(dist), -1})
		}
		return longest >= enough || longest == len(rest)
	}
	if k := int(p.index.head3[hash3(rest)]) - 1; k >= from && k < at {
		look(k, at-k, said[k:])
	}
	if len(rest) < 4 {
		return p.found
	}
	k := int(p.index.head[hash(rest)]) - 1
	for n := 0; n < tries && k >= from; n++ {
		if look(k, at-k, said[k:]) {
			return p.found
		}
		k = int(p.index.prev[k]) - 1
	}
	x := ofVocabulary()
	k = int(x.head[hash(rest)]) - 1
	for n := 0; n < tries && k >= 0; n++ {
		if look(k, at-from+len(vocabulary)-k, vocabulary[k:]) {
			break
		}
		k = int(x.prev[k]) - 1
	}
	return p.found
}

// plan finds the cheapest tokens for said[begin:], by what bits take when it begins.
func (p *Compressor) plan(said []byte, begin, from int) {
	n := len(said) - begin
	m := &p.model
	if cap(p.steps) < n+1 {
		p.steps = make([]step, n+1)
	}
	p.steps = p.steps[:n+1]
	for i := range p.steps {
		p.steps[i].price = math.MaxUint32
	}
	p.steps[0] = step{dists: m.dists, past: m.past}
	var lengths [2][enough + 1]uint32
	for i := range lengths[0] {
		lengths[1][i] = m.lengths[1].price(uint32(max(i, 1) - 1))
		lengths[0][i] = m.lengths[0].price(uint32(max(i, leastMatch) - leastMatch))
	}
	lengthPrice := func(k int, n uint32) uint32 {
		if n <= enough {
			return lengths[k][n]
		}
		if k == 0 {
			return m.lengths[0].price(n - leastMatch)
		}
		return m.lengths[1].price(n - 1)
	}
	for i := 0; i < n; {
		s := p.steps[i]
		at := begin + i
		p.index.add(said, at)
		m.past = s.past
		one, two := before(said[:at], 1), before(said[:at], 2)
		copies := &m.copies[m.context(one)]
		relax := func(length, price uint32, t token, dists [repeats]uint32, kind uint8) {
			to := &p.steps[i+int(length)]
			if price < to.price {
				*to = step{price: price, token: t, dists: dists, past: s.past<<2&12 | kind}
			}
		}
		relax(1, s.price+copies.price(0)+m.literalPrice(one, two, said[at]), token{}, s.dists, aLiteral)
		base := s.price + copies.price(1)
		jump := 1
		for r, dist := range s.dists {
			b := source(said, at, from, int(dist))
			length := uint32(common(b, said[at:]))
			if length == 0 {
				continue
			}
			price := base + m.repeat[s.past].price(1)
			for k := 0; k < r; k++ {
				price += m.which[k][s.past].price(1)
			}
			kind := uint8(aOther)
			if r == 0 {
				kind = aRepeat
			}
			if r < repeats-1 {
				price += m.which[r][s.past].price(0)
			}
			dists := s.dists
			copy(dists[1:r+1], dists[:r])
			dists[0] = dist
			shortest := uint32(1)
			if length >= enough {
				shortest, jump = length, max(jump, int(length))
			}
			for l := shortest; l <= length; l++ {
				relax(l, price+lengthPrice(1, l), token{l, dist, int8(r)}, dists, kind)
			}
		}
		if jump < enough {
			shortest := uint32(leastMatch)
			fresh := base + m.repeat[s.past].price(0)
			for _, t := range p.matches(said, at, from) {
				dists := [repeats]uint32{t.dist, s.dists[0], s.dists[1], s.dists[2]}
				if t.length >= enough {
					shortest, jump = t.length, max(jump, int(t.length))
				}
				far, of := uint32(0), uint32(len(m.far))
				for l := shortest; l <= t.length; l++ {
					if by := m.byLength(l); by != of {
						far, of = m.far[by].price(t.dist-1), by
					}
					relax(l, fresh+lengthPrice(0, l)+far, token{l, t.dist, -1}, dists, aMatch)
				}
				shortest = t.length + 1
			}
		}
		if jump > 1 {
			for k := 1; k < jump; k++ { // nothing ends there
				p.steps[i+k].price = math.MaxUint32
			}
		}
		i += jump
	}
	m.past, m.dists = p.steps[0].past, p.steps[0].dists
	for i := n; i > 0; { // back to front: each place gets the token that begins there
		t := p.steps[i].token
		i -= max(1, int(t.length))
		p.steps[i].next = t
	}
}

func source(said []byte, at, from, dist int) []byte {
	k := at - from - dist
	switch {
	case dist == 0 || k < -len(vocabulary):
		return nil
	case k < 0:
		return vocabulary[len(vocabulary)+k:]
	}
	return said[from+k:]
}
