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
	queue  eventHeap
	serial int
}

// After has do happen in a while, after whatever is to happen at the same moment already.
func (t *Timeline) After(d time.Duration, do func()) {
	t.serial++
	heap.Push(&t.queue, event{t.Now.Add(d), t.serial, do})
}

// Run lets everything happen up to a moment, until done says so, and reports what done says then.
func (t *Timeline) Run(until time.Time, done func() bool) bool {
	for len(t.queue) > 0 && !done() {
		if t.queue[0].at.After(until) {
			return false
		}
		e := heap.Pop(&t.queue).(event)
		t.Now = e.at
		e.do()
	}
	return done()
}

type event struct {
	at     time.Time
	serial int
	do     func()
}

type eventHeap []event

func (q eventHeap) Len() int { return len(q) }
func (q eventHeap) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].serial < q[j].serial
}
func (q eventHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventHeap) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventHeap) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
