// Package few has maps that take little room where they have few entries, as the tables of most
// streams do: there are many streams, and most are idle.
package few

import "slices"

// most is how many entries are looked through one by one: about as many as one look-up in a map
// takes.
const most = 8

// Map is a map. The zero value is empty. Not safe for concurrent use.
type Map[K comparable, V any] struct {
	*rows[K, V] // nil: nothing was put into it since it was made, or rested
}

// rows are the first entry, and those beside it.
type rows[K comparable, V any] struct {
	first  slot[K, V]
	vacant bool         // there is no first
	beside *table[K, V] // nil: nothing was ever beside it
}

type table[K comparable, V any] struct {
	list []slot[K, V]
	more map[K]V // nil: all are in list
}

type slot[K comparable, V any] struct {
	key   K
	value V
}

func (t *table[K, V]) index(key K) int {
	for i := range t.list {
		if t.list[i].key == key {
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
	if m.first.key == key && !m.vacant {
		return m.first.value, true
	}
	if m.beside == nil {
		return value, false
	}
	if m.beside.more != nil {
		value, ok = m.beside.more[key]
		return value, ok
	}
	if i := m.beside.index(key); i >= 0 {
		return m.beside.list[i].value, true
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
	switch {
	case m.rows == nil:
		m.rows = &rows[K, V]{first: slot[K, V]{key, value}}
	case m.first.key == key && !m.vacant:
		m.first.value = value
	case m.beside != nil && m.beside.set(key, value):
	case m.vacant:
		m.first, m.vacant = slot[K, V]{key, value}, false
	default:
		if m.beside == nil {
			m.beside = new(table[K, V])
		}
		m.beside.add(key, value)
	}
}

// set sets the value of a key that is there; false: it is not.
func (t *table[K, V]) set(key K, value V) bool {
	if t.more != nil {
		_, ok := t.more[key]
		if ok {
			t.more[key] = value
		}
		return ok
	}
	i := t.index(key)
	if i >= 0 {
		t.list[i].value = value
	}
	return i >= 0
}

// add puts a key that is not there.
func (t *table[K, V]) add(key K, value V) {
	if t.more != nil {
		t.more[key] = value
		return
	}
	if len(t.list) < most-1 {
		t.list = append(t.list, slot[K, V]{key, value})
		return
	}
	t.more = make(map[K]V, 2*most)
	for _, e := range t.list {
		t.more[e.key] = e.value
	}
	t.list, t.more[key] = nil, value
}

// Delete removes a key, if it is there.
func (m *Map[K, V]) Delete(key K) {
	switch {
	case m.rows == nil:
	case m.first.key == key && !m.vacant:
		m.first, m.vacant = slot[K, V]{}, true
	case m.beside != nil:
		m.beside.remove(key)
	}
}

func (t *table[K, V]) remove(key K) {
	if t.more != nil {
		delete(t.more, key)
		return
	}
	if i := t.index(key); i >= 0 {
		last := len(t.list) - 1
		t.list[i], t.list[last] = t.list[last], slot[K, V]{}
		t.list = t.list[:last]
	}
}

// Len is the number of entries.
func (m *Map[K, V]) Len() (n int) {
	if m.rows == nil {
		return 0
	}
	if !m.vacant {
		n = 1
	}
	if t := m.beside; t != nil {
		n += len(t.list) + len(t.more)
	}
	return n
}

// All is an iterator over the entries, in no order. The one at hand may be deleted meanwhile, and
// no other entry changed. It allocates nothing: `for k, v := range m.All`.
func (m *Map[K, V]) All(yield func(K, V) bool) {
	if m.rows == nil || !m.vacant && !yield(m.first.key, m.first.value) || m.beside == nil {
		return
	}
	for k, v := range m.beside.more {
		if !yield(k, v) {
			return
		}
	}
	for _, e := range slices.Backward(m.beside.list) { // deleting one moves those behind it
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
