package binary

import (
	"maps"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
)

// sendTable gives numbers to shapes in one direction (wire-format section 4).
type sendTable struct {
	mu      sync.Mutex
	numbers map[Fingerprint]uint64
	entries map[uint64]*sent
	free    []uint64
	next    uint64
	most    int
	mostSum int64
	sum     int64
	pinned  int    // numbers that are
	turn    uint64 // epochs so far
}

// sent is a shape with a number.
type sent struct {
	shape     *shape.Shape
	program   *shape.Program
	announced bool
	splitting int    // messages being split by it
	used      uint64 // the epoch it was used in last
	times     int    // how many messages took it in that epoch
	pinned    bool   // announced by reference on the word of the negotiation: the other end may ask for it at any time
}

func (t *sendTable) init() {
	t.numbers, t.entries = map[Fingerprint]uint64{}, map[uint64]*sent{}
	t.next, t.turn, t.most, t.mostSum = 1, 1, shapesBeforeHello, octetsBeforeHello
}

func (t *sendTable) limits(shapes int, octets int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most, t.mostSum = shapes, octets
}

// take gives the number of a program's shape, a new one if it has none; 0 if the other end's table is full. Each take needs a release.
func (t *sendTable) take(p *shape.Program) uint64 {
	s := p.Shape()
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.numbers[s.Fingerprint()]
	if !ok {
		size := int64(len(s.Octets()))
		if len(t.entries) >= t.most || t.sum+size > t.mostSum {
			return 0
		}
		if k := len(t.free); k > 0 {
			n, t.free = t.free[k-1], t.free[:k-1]
		} else {
			n, t.next = t.next, t.next+1
		}
		t.numbers[s.Fingerprint()], t.entries[n] = n, &sent{shape: s, program: p}
		t.sum += size
	}
	e := t.entries[n]
	t.touch(e)
	e.times++
	e.splitting++
	return n
}

// touch notes that a number is in use in this epoch.
func (t *sendTable) touch(e *sent) {
	if e.used != t.turn {
		e.used, e.times = t.turn, 0
	}
}

func (t *sendTable) release(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[n]; e != nil {
		t.touch(e) // the epoch that comes next may have counted the open messages before this one was among them
		e.splitting--
	}
}

// announce gives the shape of a number that must be announced before it is used, nil if it is good already.
func (t *sendTable) announce(n uint64) *shape.Shape {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[n]
	if e == nil || e.announced {
		return nil
	}
	e.announced = true
	return e.shape
}

// pin keeps a number until the other end has its shape for sure; it is false if half of the table is pinned already.
func (t *sendTable) pin(n uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[n]
	if !e.pinned && 2*(t.pinned+1) <= t.most {
		e.pinned = true
		t.pinned++
	}
	return e.pinned
}

func (t *sendTable) unpin(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[n]; e != nil && e.pinned {
		e.pinned = false
		t.pinned--
	}
}

// program is that of the shape behind a number, nil if there is none.
func (t *sendTable) program(n uint64) *shape.Program {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[n]; e != nil {
		return e.program
	}
	return nil
}

func (t *sendTable) shape(n uint64) *shape.Shape {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[n]; e != nil {
		return e.shape
	}
	return nil
}

// epoch keeps the announcements of what was used more than once since the epoch before, and of what is open: what was used once may not come again, and costs no more if it does. When the table is more than half full, numbers that were
// used by no split for two epochs are given up, and handed to gone; open was counted after the epoch before, so that no message can still use them.
func (t *sendTable) epoch(open map[uint64]int, yield func(uint64, Fingerprint), gone func(*shape.Program)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	crowded := len(t.entries) > t.most/2 || t.sum > t.mostSum/2
	for _, n := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[n]
		switch {
		case e.announced && (e.used == t.turn && e.times > 1 || open[n] > 0):
			yield(n, e.shape.Fingerprint())
			continue
		case crowded && e.used+1 < t.turn && open[n] == 0 && e.splitting == 0 && !e.pinned:
			delete(t.numbers, e.shape.Fingerprint())
			delete(t.entries, n)
			t.sum -= int64(len(e.shape.Octets()))
			t.free = append(t.free, n)
			gone(e.program)
		}
		e.announced = false
	}
	t.turn++
}

// The octets of an announcement by name: in a frame of its own, and in the list of a sync.
const (
	referenceOctets = 36
	listedOctets    = 9
)

// price is what epoch would have said again, or lists, in octets.
func (t *sendTable) price() (octets int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		switch {
		case !e.announced:
		case e.used == t.turn && e.times > 1:
			octets += listedOctets
		default:
			octets += referenceOctets
		}
	}
	return octets
}

// receiveTable is the other end's: what its numbers stand for. Only one goroutine uses it.
type receiveTable struct {
	numbers map[uint64]*received
	sum     int64
}

// received is what a number stands for; program is nil while this end lacks the shape.
type received struct {
	program *shape.Program
	size    int64
}

// set has a number that stands for nothing stand for a shape.
func (t *receiveTable) set(n uint64, p *shape.Program, opt *Options) error {
	r := &received{program: p}
	if p != nil {
		r.size = int64(len(p.Shape().Octets()))
	}
	if len(t.numbers) >= opt.MaxShapes {
		return &Error{Code: Limits, Number: n}
	}
	if t.sum += r.size; t.sum > opt.MaxShapeBytes {
		return &Error{Code: Limits, Number: n}
	}
	t.numbers[n] = r
	return nil
}

// forget returns what n stood for; nil if that was no shape that is here.
func (t *receiveTable) forget(n uint64) *shape.Program {
	r := t.numbers[n]
	if r == nil {
		return nil
	}
	t.sum -= r.size
	delete(t.numbers, n)
	return r.program
}
