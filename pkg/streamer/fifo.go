package streamer

import "slices"

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// unpop puts v before all others.
func (q *fifo[T]) unpop(v T) {
	if q.head == 0 {
		q.items = slices.Insert(q.items, 0, v)
		return
	}
	q.head--
	q.items[q.head] = v
}

func (q *fifo[T]) front() *T { return &q.items[q.head] }

func (q *fifo[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}

// lazyFifo is a fifo that takes one word until something is in it, and while it rests.
type lazyFifo[T any] struct{ made *fifo[T] }

func (q *lazyFifo[T]) make() *fifo[T] {
	if q.made == nil {
		q.made = new(fifo[T])
	}
	return q.made
}

func (q *lazyFifo[T]) len() int {
	if q.made == nil {
		return 0
	}
	return q.made.len()
}

func (q *lazyFifo[T]) push(v T)  { q.make().push(v) }
func (q *lazyFifo[T]) unpop(v T) { q.make().unpop(v) }
func (q *lazyFifo[T]) pop() T    { return q.made.pop() }

// rest gives back its memory, if it is empty.
func (q *lazyFifo[T]) rest() {
	if q.len() == 0 {
		q.made = nil
	}
}
