package flow

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// maxDatagrams is how many fragmented datagrams wait at a time; a datagram is at most 64 KiB,
	// so they take at most 16 MiB.
	maxDatagrams = 256
	// maxFragments bounds the fragments of one datagram.
	maxFragments = 1024
	// maxDatagram is the longest payload that IP can fragment, in bytes.
	maxDatagram = 1<<16 - 1
	// fragmentAge is how long a datagram waits (RFC 8200, section 4.5): after that identifications
	// are used again.
	fragmentAge = 60 * time.Second
)

// fragmentKey is what fragments of one datagram have in common.
type fragmentKey struct {
	src, dst netip.Addr
	proto    byte
	id       uint32
	encap    uint64
}

type fragment struct {
	at   int
	data []byte
}

type datagram struct {
	key   fragmentKey
	begun time.Time
	parts []fragment // in order, without overlaps
	total int        // -1 until the last fragment is there
	have  int
}

// fragments reassembles IP datagrams; where fragments overlap, the first counts.
type fragments struct {
	waiting []*datagram // oldest first
	lost    int         // datagrams that were never completed
}

// add returns the whole payload if this fragment was the last one missing, else nil.
func (f *fragments) add(key fragmentKey, at int, more bool, data []byte, now time.Time) []byte {
	if at+len(data) > maxDatagram || len(data) == 0 && more {
		return nil
	}
	i := slices.IndexFunc(f.waiting, func(d *datagram) bool { return d.key == key })
	if i >= 0 && now.Sub(f.waiting[i].begun) > fragmentAge {
		f.drop(i)
		i = -1
	}
	if i < 0 {
		if len(f.waiting) >= maxDatagrams {
			f.drop(0)
		}
		i = len(f.waiting)
		f.waiting = append(f.waiting, &datagram{key: key, begun: now, total: -1})
	}
	d := f.waiting[i]
	if !more && d.total < 0 {
		d.total = at + len(data)
	}
	d.insert(at, data)
	if d.total < 0 || d.have < d.total {
		if len(d.parts) > maxFragments {
			f.drop(i)
		}
		return nil
	}
	f.waiting = slices.Delete(f.waiting, i, i+1)
	whole := d.join()
	if len(whole) < d.total { // fragments beyond the end compensated for a hole
		f.lost++
		return nil
	}
	return whole
}

func (f *fragments) drop(i int) {
	f.waiting = slices.Delete(f.waiting, i, i+1)
	f.lost++
}

// insert adds those bytes of data that are new.
func (d *datagram) insert(at int, data []byte) {
	if d.total >= 0 && at+len(data) > d.total {
		data = data[:max(0, d.total-at)]
	}
	i, _ := slices.BinarySearchFunc(d.parts, at, func(p fragment, at int) int { return p.at + len(p.data) - at - 1 })
	for len(data) > 0 {
		n := len(data)
		if i < len(d.parts) {
			p := d.parts[i]
			n = min(n, max(0, p.at-at))
			if n == 0 {
				over := min(len(data), p.at+len(p.data)-at)
				at, data = at+over, data[over:]
				i++
				continue
			}
		}
		d.parts = slices.Insert(d.parts, i, fragment{at, slices.Clone(data[:n])})
		d.have += n
		at, data = at+n, data[n:]
		i++
	}
}

// join returns the bytes up to the first hole.
func (d *datagram) join() []byte {
	b := make([]byte, 0, d.total)
	for _, p := range d.parts {
		if p.at != len(b) || p.at >= d.total {
			break
		}
		b = append(b, p.data[:min(len(p.data), d.total-p.at)]...)
	}
	return b
}
