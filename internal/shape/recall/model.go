package recall

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
)

const (
	leastMatch = 3
	// kinds of tokens, as past remembers them
	aLiteral = 0
	aMatch   = 1
	aRepeat  = 2
	aOther   = 3 // a repeat of another than the last distance

	literalBits = 14
	repeats     = 4
	// primed is of how many bytes of the vocabulary, its last, a model has seen the literals.
	primed = 8 << 10
)

// model is what a coder expects. It follows what is coded.
type model struct {
	tokens
	byLast [64 * 256]prob         // literals, by the byte before
	byTwo  [1 << literalBits]prob // by the two before, hashed
	dists  [repeats]uint32        // of the last copies
	past   uint8                  // the kinds of the last two tokens
}

// tokens is what a window remembers of a model.
type tokens struct {
	copies  [16 * 8]prob // by what came: a literal, or a copy
	repeat  [16]prob     // a copy: of a new distance, or of one of those before
	which   [repeats - 1][16]prob
	lengths [2]numberModel // of copies of a new distance, and of one of those before
	far     [4]numberModel // distances, by the length
}

// numberModel is the model of a number: its size, then its highest bits; those below are even.
type numberModel struct {
	size [32]prob
	high [32][8]prob
}

func (n *numberModel) each(do func(p []prob)) {
	do(n.size[:])
	for i := range n.high {
		do(n.high[i][:])
	}
}

func fill(p []prob) {
	for i := range p {
		p[i] = even
	}
}

// each lists all probabilities, in an order.
func (t *tokens) each(do func(p []prob)) {
	do(t.copies[:])
	do(t.repeat[:])
	for i := range t.which {
		do(t.which[i][:])
	}
	for i := range t.lengths {
		t.lengths[i].each(do)
	}
	for i := range t.far {
		t.far[i].each(do)
	}
}

// fold gives the probabilities that are not even, each behind how many are even before it: most are
// where little was said.
func (t *tokens) fold() (folded []byte) {
	evens := uint64(0)
	t.each(func(p []prob) {
		for _, v := range p {
			if v == even {
				evens++
				continue
			}
			folded = binary.LittleEndian.AppendUint16(binary.AppendUvarint(folded, evens), uint16(v))
			evens = 0
		}
	})
	return append(make([]byte, 0, len(folded)), folded...)
}

// unfold sets what was folded, where all are even.
func (t *tokens) unfold(folded []byte) {
	evens, n := binary.Uvarint(folded)
	t.each(func(p []prob) {
		for i := range p {
			switch {
			case len(folded) == 0:
			case evens > 0:
				evens--
			default:
				p[i] = prob(binary.LittleEndian.Uint16(folded[n:]))
				folded = folded[n+2:]
				evens, n = binary.Uvarint(folded)
			}
		}
	})
}

// first is a model that has seen the literals of the end of the vocabulary, and no tokens. With
// more of them it expects the next worse, and takes longer to make.
var first = sync.OnceValue(func() *model {
	m := &model{}
	m.each(fill)
	fill(m.byLast[:])
	fill(m.byTwo[:])
	var c coder
	c.write(nil)
	end := vocabulary[len(vocabulary)-primed:]
	for i, octet := range end {
		m.literal(&c, before(end[:i], 1), before(end[:i], 2), octet)
	}
	return m
})

// context is what the next token is expected by: what came, and after which byte.
func (m *model) context(last byte) int {
	class := 0
	switch {
	case last == '<':
		class = 1
	case last == '>':
		class = 2
	case last == '"' || last == '\'':
		class = 3
	case last <= ' ':
		class = 4
	case last >= '0' && last <= '9':
		class = 5
	case last|0x20 >= 'a' && last|0x20 <= 'z':
		class = 6
	}
	return int(m.past)<<3 | class
}

func (m *model) note(kind uint8) { m.past = m.past<<2&12 | kind }

// tables are where literals behind two bytes are expected by.
func (m *model) tables(one, two byte) (byLast []prob, from uint32) {
	at := int(one&63) << 8
	return m.byLast[at : at+256], (uint32(one)<<8 | uint32(two)) * 0x9E3779B1 >> 8
}

func slot(from, node uint32) uint32 {
	return (from + node*0x2545F491) * 0x9E3779B1 >> (32 - literalBits)
}

// literal codes an byte behind two others.
func (m *model) literal(c *coder, one, two, octet byte) byte {
	byLast, from := m.tables(one, two)
	node := uint32(1)
	for i := 7; i >= 0; i-- {
		bit := c.both(&byLast[node], &m.byTwo[slot(from, node)], int(octet>>i)&1)
		node = node<<1 | uint32(bit)
	}
	return byte(node)
}

// byLength is which model a distance has by the length of its copy.
func (t *tokens) byLength(length uint32) uint32 { return min(length-leastMatch, uint32(len(t.far)-1)) }

// number codes a number below 1<<31.
func (n *numberModel) number(c *coder, v uint32) uint32 {
	size := bits.Len32(v + 1)
	node := 1
	for i := 4; i >= 0; i-- {
		node = node<<1 | c.bit(&n.size[node], size>>i&1)
	}
	size = node & 31
	rest := uint32(1)
	for i := size - 2; i >= 0; i-- {
		bit := int(v+1) >> i & 1
		if rest < 8 {
			bit = c.bit(&n.high[size][rest], bit)
		} else {
			bit = c.flat(bit)
		}
		rest = rest<<1 | uint32(bit)
	}
	return rest - 1
}

// prices are what bits take by their probabilities, in 1/64 of a bit.
var prices = func() (p [1 << (probBits - 4)]uint32) {
	for i := range p {
		p[i] = uint32(-64 * math.Log2((float64(i)+0.5)/float64(len(p))))
	}
	return p
}()

func (p prob) price(bit int) uint32 {
	if bit == 1 {
		p = 1<<probBits - 1 - p
	}
	return prices[p>>4]
}

func (m *model) literalPrice(one, two, octet byte) (sum uint32) {
	byLast, from := m.tables(one, two)
	node := uint32(1)
	for i := 7; i >= 0; i-- {
		bit := int(octet>>i) & 1
		sum += ((byLast[node] + m.byTwo[slot(from, node)]) / 2).price(bit)
		node = node<<1 | uint32(bit)
	}
	return sum
}

func (n *numberModel) price(v uint32) (sum uint32) {
	size := bits.Len32(v + 1)
	node := 1
	for i := 4; i >= 0; i-- {
		sum += n.size[node].price(size >> i & 1)
		node = node<<1 | size>>i&1
	}
	rest := uint32(1)
	for i := size - 2; i >= 0; i-- {
		bit := int(v+1) >> i & 1
		if rest >= 8 {
			return sum + 64*uint32(i+1)
		}
		sum += n.high[size][rest].price(bit)
		rest = rest<<1 | uint32(bit)
	}
	return sum
}

// token is a literal, or a copy of bytes from a distance; with repeat it is that of an earlier
// copy.
type token struct {
	length uint32 // 0: a literal
	dist   uint32
	repeat int8 // -1: a new distance
}

// token codes a token behind an byte, except the byte of a literal.
func (m *model) token(c *coder, last byte, t token) token {
	bit := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	past := m.past
	if c.bit(&m.copies[m.context(last)], bit(t.length > 0)) == 0 {
		m.note(aLiteral)
		return token{}
	}
	if c.bit(&m.repeat[past], bit(t.repeat >= 0)) == 0 {
		t.length = leastMatch + m.lengths[0].number(c, t.length-leastMatch)
		t.dist = 1 + m.far[m.byLength(t.length)].number(c, t.dist-1)
		t.repeat = -1
		m.dists = [repeats]uint32{t.dist, m.dists[0], m.dists[1], m.dists[2]}
		m.note(aMatch)
		return t
	}
	which := 0
	for which < repeats-1 && c.bit(&m.which[which][past], bit(int(t.repeat) > which)) == 1 {
		which++
	}
	t.repeat, t.dist = int8(which), m.dists[which]
	t.length = 1 + m.lengths[1].number(c, t.length-1)
	copy(m.dists[1:which+1], m.dists[:which])
	m.dists[0] = t.dist
	if which == 0 {
		m.note(aRepeat)
	} else {
		m.note(aOther)
	}
	return t
}
