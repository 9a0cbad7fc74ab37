package deflate

import (
	"bytes"
	"compress/flate"
	"io"
	"slices"
	"sync"
)

const (
	// inflatedTimes bounds what a body unfolds to: SOAP gets 10 to 100 times smaller, a bomb 1,000.
	inflatedTimes = 200
	// searched bounds one search, in bytes that are deflated: short bodies are tried with all
	// parameters that are common, one of MaxPlain with two.
	searched = 2 * (MaxPlain + perSearch)
	// perSearch is what a try with other parameters counts beside the bytes.
	perSearch = 1 << 10
	// maxPause is the largest number of bodies that are passed over after one that zlib did not
	// write.
	maxPause = 255
)

// Finder finds out how the bodies of one sender were coded. Its last parameters are tried first,
// and after bodies that zlib did not write more and more are passed over. The zero Finder is ready.
type Finder struct {
	last         Params
	failed, left int // how many bodies were passed over last time, and are to be still
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// Find returns what a body was before it was coded, and how to code it again: [Coding.Append] gives
// exactly the same bytes. It is false if that is not known, or would take too much.
func (f *Finder) Find(coded []byte) (plain []byte, c Coding, ok bool) {
	if f.left > 0 {
		f.left--
		return nil, c, false
	}
	if c.Header, ok = headerOf(coded); ok {
		deflated := coded[len(c.Header):]
		plain, n := inflate(deflated)
		if n > 0 && bytes.Equal(deflated[n:], c.trailer(plain)) && f.search(&c, plain, deflated[:n]) {
			f.last, f.failed = c.Params, 0
			return plain, c, true
		}
	}
	f.failed = min(2*f.failed+1, maxPause)
	f.left = f.failed
	return nil, c, false
}

// inflate returns what is deflated, and the length of that; 0: it is not valid, or too much.
func inflate(deflated []byte) (plain []byte, n int) {
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	in := bytes.NewReader(deflated)
	if r.(flate.Resetter).Reset(in, nil) != nil {
		return nil, 0
	}
	limit := min(MaxPlain, inflatedTimes*len(deflated))
	plain, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil || len(plain) > limit {
		return nil, 0
	}
	return plain, len(deflated) - in.Len()
}

// search finds the parameters with which plain becomes the deflated bytes.
func (f *Finder) search(c *Coding, plain, deflated []byte) bool {
	left := searched
	for _, p := range f.candidates(c.Header, len(plain)) {
		if left -= len(plain) + perSearch; left < 0 {
			return false
		}
		if got, ok := Append(nil, plain, p); ok && bytes.Equal(got, deflated) {
			c.Params = p
			return true
		}
	}
	return false
}

// candidates are the parameters that senders use, likely ones first: a level, and a window with a
// memory.
func (f *Finder) candidates(header string, plain int) (all []Params) {
	levels := []int{6, 9, 1, 5, 4, 7, 8, 3, 2}
	switch {
	case len(header) == gzipHeader && header[8] == 2, len(header) == zlibHeader && header[1]>>6 == 3:
		levels = slices.Insert(levels, 0, 9)
	case len(header) == gzipHeader && header[8] == 4, len(header) == zlibHeader && header[1]>>6 == 0:
		levels = slices.Insert(levels, 0, 1)
	}
	// nginx takes smaller ones for a body whose length it knows
	small := Params{Window: 15, Memory: 8}
	for small.Window > 9 && plain < 1<<(small.Window-1)-minAhead {
		small.Window, small.Memory = small.Window-1, max(1, small.Memory-1)
	}
	for _, level := range levels {
		if all = append(all, Params{level, 15, 8}, Params{level, 15, 9}); small.Window < 15 {
			all = append(all, Params{level, small.Window, small.Memory})
		}
	}
	if f.last.areValid() {
		all = slices.Insert(all, 0, f.last)
	}
	return all
}
