package reuse

import "sync"

// MaxSpares is how many things of a kind are kept.
const MaxSpares = 8

// Spares are things that nobody has at the moment, few of them: what is given back beyond
// [MaxSpares] is garbage. They are for what many owners give back at about the same time, as
// streams do that turn idle. A [sync.Pool] would keep all of it for two collections, and an idle
// process runs few. The zero value has none. Safe for concurrent use.
type Spares[T any] struct {
	mu   sync.Mutex
	list []*T
}

// Get gives one of them; nil: there is none.
func (s *Spares[T]) Get() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.list) - 1
	if last < 0 {
		return nil
	}
	v := s.list[last]
	s.list[last], s.list = nil, s.list[:last]
	return v
}

// Put takes one that its owner uses no more.
func (s *Spares[T]) Put(v *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) < MaxSpares {
		s.list = append(s.list, v)
	}
}
