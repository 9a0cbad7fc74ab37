package recall

// prob is how likely a bit is 0, of 1<<probBits.
type prob uint16

const (
	probBits = 12
	even     = 1 << (probBits - 1)
	// fast and slow are how quickly probabilities follow the bits that come.
	fast = 4
	slow = 5
	// least is the width below which the coder moves on by a byte.
	least = 1 << 24
)

func (p *prob) update(bit int, rate uint) {
	if bit == 0 {
		*p += (1<<probBits - *p) >> rate
	} else {
		*p -= *p >> rate
	}
}

// coder is a range coder as that of LZMA, which writes bits, or reads them: the model does not care
// which.
type coder struct {
	width   uint32
	reading bool

	low   uint64 // writing
	held  int    // bytes 0xff behind last, which a carry changes
	last  byte
	begun bool
	out   []byte

	code uint32 // reading
	in   []byte
}

func (c *coder) write(dst []byte) { *c = coder{width: 1<<32 - 1, out: dst} }

func (c *coder) read(in []byte) {
	*c = coder{width: 1<<32 - 1, in: in, reading: true}
	for range 4 {
		c.next()
	}
}

// next takes a byte in; behind the end there are zeros.
func (c *coder) next() {
	c.code <<= 8
	if len(c.in) > 0 {
		c.code |= uint32(c.in[0])
		c.in = c.in[1:]
	}
}

// choose codes a bit; zero is the part of the width that stands for 0.
func (c *coder) choose(bit int, zero uint32) int {
	if c.reading {
		bit = 0
		if c.code >= zero {
			bit = 1
			c.code -= zero
		}
	}
	if bit == 0 {
		c.width = zero
	} else {
		c.low += uint64(zero)
		c.width -= zero
	}
	for c.width < least {
		c.width <<= 8
		if c.reading {
			c.next()
		} else {
			c.shift()
		}
	}
	return bit
}

// shift moves the highest byte out.
func (c *coder) shift() {
	if c.low>>24 == 0xff {
		c.held++
	} else {
		carry := byte(c.low >> 32)
		if c.begun {
			c.out = append(c.out, c.last+carry)
		}
		for ; c.held > 0; c.held-- {
			c.out = append(c.out, 0xff+carry)
		}
		c.begun, c.last = true, byte(c.low>>24)
	}
	c.low = c.low & (1<<24 - 1) << 8
}

// finish writes the rest, from as few bytes as tell it apart: zeros at the end of those behind from
// are left out.
func (c *coder) finish(from int) []byte {
	for zeros := 32; zeros >= 0; zeros -= 8 {
		mask := uint64(1)<<zeros - 1
		if v := (c.low + mask) &^ mask; v < c.low+uint64(c.width) {
			c.low = v
			break
		}
	}
	for range 5 {
		c.shift()
	}
	for len(c.out) > from && c.out[len(c.out)-1] == 0 {
		c.out = c.out[:len(c.out)-1]
	}
	return c.out
}

// bit codes a bit by a probability that follows.
func (c *coder) bit(p *prob, bit int) int {
	bit = c.choose(bit, c.width>>probBits*uint32(*p))
	p.update(bit, fast)
	return bit
}

// both codes a bit by the mean of two probabilities.
func (c *coder) both(p, q *prob, bit int) int {
	bit = c.choose(bit, c.width>>(probBits+1)*(uint32(*p)+uint32(*q)))
	p.update(bit, slow)
	q.update(bit, fast)
	return bit
}

// flat codes a bit that is as likely 0 as 1.
func (c *coder) flat(bit int) int { return c.choose(bit, c.width>>1) }
