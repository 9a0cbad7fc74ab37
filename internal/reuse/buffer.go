// Package reuse has memory that is used again, so that a message on its way allocates little. In
// programs built with the race detector what is given back is overwritten: who still reads it is
// found out by the tests.
package reuse

import "sync"

// Buffer is memory of one owner at a time.
type Buffer struct{ Octets []byte }

// Buffers are those that nobody owns at the moment. It is safe for concurrent use.
type Buffers struct {
	// Most is the largest capacity that is kept, in bytes.
	Most int

	free sync.Pool
}

// Get gives a buffer without content, and with room for n bytes.
func (p *Buffers) Get(n int) *Buffer {
	var b *Buffer
	if n <= p.Most {
		b, _ = p.free.Get().(*Buffer)
	}
	if b == nil {
		b = new(Buffer)
	}
	if cap(b.Octets) < n {
		b.Octets = make([]byte, 0, n)
	}
	return b
}

// Put takes a buffer that its owner uses no more; nil: none.
func (p *Buffers) Put(b *Buffer) {
	if b == nil || cap(b.Octets) > p.Most {
		return
	}
	spoil(b.Octets[:cap(b.Octets)])
	b.Octets = b.Octets[:0]
	p.free.Put(b)
}

// Sizes are buffers by their size: the largest capacities of each, in ascending order. A buffer
// takes at most about as much as the next smaller one beyond what is asked for.
type Sizes []Buffers

// Get gives a buffer without content, and with room for n bytes. Those of the first size have no
// more, the others all that their size has, so that they serve for whatever comes.
func (s Sizes) Get(n int) *Buffer {
	for i := range s {
		if p := &s[i]; n <= p.Most {
			if i > 0 {
				n = p.Most
			}
			return p.Get(n)
		}
	}
	return &Buffer{Octets: make([]byte, 0, n)}
}

// Put takes a buffer that its owner uses no more; nil: none.
func (s Sizes) Put(b *Buffer) {
	if b == nil {
		return
	}
	for i := range s {
		if p := &s[i]; cap(b.Octets) <= p.Most {
			p.Put(b)
			return
		}
	}
}
