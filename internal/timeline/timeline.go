// Package timeline has things happen in virtual time, one after the other, for estimates, and for
// tests of engines that have no clock.
package timeline

import (
	"container/heap"
	"time"
)

// Timeline is what is to happen. The zero value begins at the zero time, with nothing. Not safe for
// concurrent use.
type Timeline struct {
	Now    time.Time
	queue  Queue[func()]
	serial int
}

// After has do happen in a while, after whatever is to happen at the same moment already.
func (t *Timeline) After(d time.Duration, do func()) {
	t.serial++
	heap.Push(&t.queue, Event[func()]{t.Now.Add(d), t.serial, do})
}

// Run lets everything happen up to a moment, until done says so, and reports what done says then.
func (t *Timeline) Run(until time.Time, done func() bool) bool {
	for len(t.queue) > 0 && !done() {
		if t.queue[0].At.After(until) {
			return false
		}
		e := heap.Pop(&t.queue).(Event[func()])
		t.Now = e.At
		e.What()
	}
	return done()
}

// Event is something that is to happen at a moment, after those of a lower serial then.
type Event[T any] struct {
	At     time.Time
	Serial int
	What   T
}

// Queue is a [heap.Interface] of events, the next one first.
type Queue[T any] []Event[T]

// Len implements [heap.Interface], like the other methods.
func (q Queue[T]) Len() int { return len(q) }

// Less reports whether one event is before another.
func (q Queue[T]) Less(i, j int) bool {
	return q[i].At.Before(q[j].At) || q[i].At.Equal(q[j].At) && q[i].Serial < q[j].Serial
}

// Swap swaps two events.
func (q Queue[T]) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds the last event.
func (q *Queue[T]) Push(x any) { *q = append(*q, x.(Event[T])) }

// Pop removes the last event.
func (q *Queue[T]) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
