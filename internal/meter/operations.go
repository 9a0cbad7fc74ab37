package meter

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

const (
	// busiest is how many operations have counters of their own at first.
	busiest = 50
	// maxOperations bounds those that ever get some. A counter must not go back, so an operation
	// that had its own keeps it; one that gets busy later than the first gets its own all the same.
	maxOperations = 4 * busiest
	// maxCandidates bounds the other operations whose calls are counted to find out which are busy.
	maxCandidates = 1024
	// maxName is the longest name that is kept, in bytes.
	maxName = 128
	// recount is the number of calls of candidates after which it is looked again how busy an
	// operation must be to get counters of its own.
	recount = 256
)

// operation are the counters of one.
type operation struct{ stream, plain timedLoad }

func (o *operation) calls() int64 { return o.stream.calls.Load() + o.plain.calls.Load() }

// operations are the counters of operations. Those of their own are found without a lock.
type operations struct {
	none, other operation
	own         atomic.Pointer[map[string]*operation]

	mu         sync.Mutex
	candidates map[string]int64 // calls so far
	calls      int64            // of candidates
	threshold  int64            // calls by which a candidate gets counters of its own
}

func (o *operations) init() {
	o.own.Store(&map[string]*operation{})
	o.candidates = map[string]int64{}
}

// of returns the counters of an operation, for a call that begins.
func (o *operations) of(name []byte) *operation {
	if l := (*o.own.Load())[string(name)]; l != nil {
		return l
	}
	switch {
	case len(name) == 0 || string(name) == NoOperation:
		return &o.none
	case len(name) > maxName || string(name) == Other || !utf8.Valid(name) || bytes.ContainsFunc(name, isHidden):
		return &o.other
	}
	return o.candidate(name)
}

// isHidden reports whether a character does something else to a terminal than show itself, also
// where a line end is escaped, as in labels.
func isHidden(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// candidate counts a call of an operation without counters of its own, which may get some.
func (o *operations) candidate(name []byte) *operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := *o.own.Load()
	if l := own[string(name)]; l != nil {
		return l
	}
	if len(own) < busiest {
		return o.promote(own, name)
	}
	if len(own) >= maxOperations {
		return &o.other
	}
	if o.calls%recount == 0 {
		o.threshold = 2 * leastOfBusiest(own)
	}
	o.calls++
	n := o.candidates[string(name)] + 1
	if n > o.threshold {
		delete(o.candidates, string(name))
		return o.promote(own, name)
	}
	if n == 1 && len(o.candidates) >= maxCandidates {
		o.forget()
	}
	o.candidates[string(name)] = n
	return &o.other
}

// promote gives an operation counters of its own.
func (o *operations) promote(own map[string]*operation, name []byte) *operation {
	l := new(operation)
	more := maps.Clone(own)
	more[string(name)] = l
	o.own.Store(&more)
	return l
}

// forget forgets the half of the candidates that has fewer calls.
func (o *operations) forget() {
	calls := slices.Sorted(maps.Values(o.candidates))
	maps.DeleteFunc(o.candidates, func(_ string, n int64) bool { return n <= calls[len(calls)/2] })
}

// leastOfBusiest is the number of calls of the last of the busiest operations.
func leastOfBusiest(own map[string]*operation) int64 {
	var calls []int64
	for _, l := range own {
		calls = append(calls, l.calls())
	}
	slices.Sort(calls)
	return calls[max(0, len(calls)-busiest)]
}
