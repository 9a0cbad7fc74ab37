package deflate

import "math/bits"

// code is a Huffman code: by symbol the length of its code word, and that, first bit lowest.
type code struct {
	lens  [literals + 2]uint8
	codes [literals + 2]uint16
}

// assign gives the first n symbols their code words, by the lengths (RFC 1951, section 3.2.2).
func (c *code) assign(n int) {
	var count, next [17]uint16
	for _, length := range c.lens[:n] {
		count[length]++
	}
	count[0] = 0
	for length := 1; length < len(next); length++ {
		next[length] = (next[length-1] + count[length-1]) << 1
	}
	for s, length := range c.lens[:n] {
		if length > 0 {
			c.codes[s] = bits.Reverse16(next[length]) >> (16 - length)
			next[length]++
		}
	}
}

const maxNodes = 2*literals + 1

// tree makes a Huffman code of frequencies, as zlib does where several codes are as short: it goes
// by a heap in an array, whose operations must be in the same order.
type tree struct {
	freq [literals]uint16 // how often a symbol is in the block
	code
	last int // the highest symbol that has a code word

	// Nodes are the leaves, which are the symbols, and then the others. heap[1:count+1] has those
	// without a parent; from the end of heap stand those with one, backward.
	weight [maxNodes]uint16
	depth  [maxNodes]uint8
	parent [maxNodes]uint16
	heap   [maxNodes]uint16
	count  int
}

// size is how many bits the symbols take in a code.
func (t *tree) size(c *code) (n int) {
	for s, times := range t.freq {
		n += int(times) * int(c.lens[s])
	}
	return n
}

// build makes the code of the first n symbols, whose code words have at most so many bits. At least
// two symbols get one.
func (t *tree) build(n, most int) {
	t.count, t.last = 0, -1
	for s := range n {
		t.lens[s], t.depth[s], t.weight[s] = 0, 0, t.freq[s]
		if t.freq[s] > 0 {
			t.push(s)
			t.last = s
		}
	}
	for t.count < 2 {
		s := 0
		if t.last < 2 {
			t.last++
			s = t.last
		}
		t.push(s)
		t.weight[s] = 1
	}
	for at := t.count / 2; at >= 1; at-- {
		t.sink(at)
	}
	free := len(t.heap)
	for node := n; t.count >= 2; node++ {
		a := t.heap[1]
		t.heap[1] = t.heap[t.count]
		t.count--
		t.sink(1)
		b := t.heap[1]
		free -= 2
		t.heap[free], t.heap[free+1] = b, a
		t.weight[node], t.depth[node] = t.weight[a]+t.weight[b], max(t.depth[a], t.depth[b])+1
		t.parent[a], t.parent[b] = uint16(node), uint16(node)
		t.heap[1] = uint16(node)
		t.sink(1)
	}
	t.measure(t.heap[free:], n, most)
	t.assign(n)
}

func (t *tree) push(symbol int) {
	t.count++
	t.heap[t.count] = uint16(symbol)
}

// sink moves the node at a place of the heap down to where it belongs.
func (t *tree) sink(at int) {
	node := t.heap[at]
	for child := 2 * at; child <= t.count; child *= 2 {
		if child < t.count && t.isLess(t.heap[child+1], t.heap[child]) {
			child++
		}
		if t.isLess(node, t.heap[child]) {
			break
		}
		t.heap[at], at = t.heap[child], child
	}
	t.heap[at] = node
}

func (t *tree) isLess(a, b uint16) bool {
	return t.weight[a] < t.weight[b] || t.weight[a] == t.weight[b] && t.depth[a] <= t.depth[b]
}

// measure sets the lengths of the code words. order has the nodes below the root, parents first.
func (t *tree) measure(order []uint16, symbols, most int) {
	var length [maxNodes]int // by node
	var count [16]int        // of symbols, by length
	tooLong := 0
	for _, node := range order {
		n := length[t.parent[node]] + 1
		if n > most {
			n = most
			tooLong++
		}
		if length[node] = n; int(node) < symbols {
			count[n]++
			t.lens[node] = uint8(n)
		}
	}
	if tooLong == 0 {
		return
	}
	for ; tooLong > 0; tooLong -= 2 {
		n := most - 1
		for count[n] == 0 {
			n--
		}
		count[n]--
		count[n+1] += 2
		count[most]--
	}
	at := len(order)
	for n := most; n > 0; n-- {
		for count[n] > 0 {
			at--
			if node := order[at]; int(node) < symbols {
				t.lens[node] = uint8(n)
				count[n]--
			}
		}
	}
}
