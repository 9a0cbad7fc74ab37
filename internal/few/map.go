// Package few has maps that take little room where they have few entries, as the tables of most
// streams do: there are many streams, and most are idle.
package few

import (
	"slices"
)

// most is how many entries are looked through one by one: about as many as one look-up in a map
// takes.
const most = 8

// Map is a map. The zero value is empty. Not safe for concurrent use.
type Map[K comparable, V any] struct {
	*rows[K, V] // nil: nothing was put into it since it was made, or rested
}

type rows[K comparable, V any] struct {
	list  []slot[K, V]
	more  map[K]V // nil: all are in list
	first [1]slot[K, V]
}

type slot[K comparable, V any] struct {
	key   K
	value V
}

func (m *rows[K, V]) index(key K) int {
	for i := range m.list {
		if m.list[i].key == key {
			return i
		}
	}
	return -1
}

// Find returns the value of a key, if there is one.
func (m *Map[K, V]) Find(key K) (value V, ok bool) {
	if m.rows == nil {
		return value, false
	}
	if m.more != nil {
		value, ok = m.more[key]
		return value, ok
	}
	if i := m.index(key); i >= 0 {
		return m.list[i].value, true
	}
	return value, false
}

// Get returns the value of a key, the zero value if there is none.
func (m *Map[K, V]) Get(key K) V {
	value, _ := m.Find(key)
	return value
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	if m.rows == nil {
		m.rows = new(rows[K, V])
		m.list = m.first[:0]
	}
	if m.more != nil {
		m.more[key] = value
		return
	}
	if i := m.index(key); i >= 0 {
		m.list[i].value = value
		return
	}
	if len(m.list) < most {
		m.list = append(m.list, slot[K, V]{key, value})
		return
	}
	m.more = make(map[K]V, 2*most)
	for _, e := range m.list {
		m.more[e.key] = e.value
	}
	m.list, m.more[key] = nil, value
	clear(m.first[:])
}

// Delete removes a key, if it is there.
func (m *Map[K, V]) Delete(key K) {
	if m.rows == nil {
		return
	}
	if m.more != nil {
		delete(m.more, key)
		return
	}
	if i := m.index(key); i >= 0 {
		last := len(m.list) - 1
		m.list[i], m.list[last] = m.list[last], slot[K, V]{}
		m.list = m.list[:last]
	}
}

// Len is the number of entries.
func (m *Map[K, V]) Len() int {
	if m.rows == nil {
		return 0
	}
	return len(m.list) + len(m.more)
}

// All is an iterator over the entries, in no order. The one at hand may be deleted meanwhile, and
// no other entry changed. It allocates nothing: `for k, v := range m.All`.
func (m *Map[K, V]) All(yield func(K, V) bool) {
	if m.rows == nil {
		return
	}
	for k, v := range m.more {
		if !yield(k, v) {
			return
		}
	}
	for _, e := range slices.Backward(m.list) { // deleting one moves those behind it
		if !yield(e.key, e.value) {
			return
		}
	}
}

// Rest gives back the room of a map that is empty.
func (m *Map[K, V]) Rest() {
	if m.Len() == 0 {
		m.rows = nil
	}
}
