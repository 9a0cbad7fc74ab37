package sock

import (
	"sync"
	"weak"
)

// maxSpares is how many long buffers that nobody has are kept.
const maxSpares = 4

// spareSpace are long buffers that nobody has, until a garbage collection takes them. Any processor
// may have any of them: of a [sync.Pool] each processor would keep its own, and they are long.
type spareSpace struct {
	mu   sync.Mutex
	list []weak.Pointer[[]byte]
}

// longBuffers are of different sizes: whoever reserves space mostly reserves as much as others did.
var longBuffers spareSpace

// get gives an empty buffer with room for n bytes, and for no more than four times as many.
func (s *spareSpace) get(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		buf := s.list[i].Value()
		if buf != nil && (cap(*buf) < n || cap(*buf) > 4*n) {
			continue
		}
		s.list = append(s.list[:i], s.list[i+1:]...)
		if buf != nil {
			return (*buf)[:0]
		}
	}
	return make([]byte, 0, n)
}

// put takes a buffer that its owner uses no more.
func (s *spareSpace) put(buf []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == maxSpares {
		s.list = append(s.list[:0], s.list[1:]...)
	}
	s.list = append(s.list, weak.Make(&buf))
}
