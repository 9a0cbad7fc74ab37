package binary

import "sync/atomic"

const (
	// allowanceMost is what a lane may spend on learning at first, and save: about 256 kinds of
	// messages.
	allowanceMost = 256 * learnCost
	// learnCost is the price of learning from a message, beside one for each KiB of it.
	learnCost = 64
	// fitWorth is what a message that fits a known shape earns: learning goes on where it pays.
	fitWorth = 16
)

// allowance bounds the work of the learner on messages whose kinds do not repeat: what it spends
// must be earned by messages that fit. It counts messages, not time, so that it is the same on
// every machine. Safe for concurrent use.
type allowance struct{ spent atomic.Int32 }

// may reports whether anything is left.
func (a *allowance) may() bool { return a.spent.Load() <= allowanceMost-learnCost }

// spend takes the price of learning from a message of n bytes, if there is enough left.
func (a *allowance) spend(n int) bool {
	if !a.may() {
		return false
	}
	a.spent.Add(int32(learnCost + n>>10))
	return true
}

// earn notes a message that fitted.
func (a *allowance) earn() {
	if spent := a.spent.Load(); spent > 0 {
		a.spent.CompareAndSwap(spent, spent-fitWorth)
	}
}

// allowances are those of the lanes of a stream. Lanes far apart share one, so that many of them
// take no more room; most streams have lane 0 alone.
type allowances struct {
	first  allowance
	others atomic.Pointer[[64]allowance]
}

func (a *allowances) of(lane uint64) *allowance {
	if lane == 0 {
		return &a.first
	}
	all := a.others.Load()
	if all == nil {
		a.others.CompareAndSwap(nil, new([64]allowance))
		all = a.others.Load()
	}
	return &all[lane%uint64(len(all))]
}
