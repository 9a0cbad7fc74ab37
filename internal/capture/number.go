package capture

import (
	"slices"
	"sort"
)

const (
	// maxHole bounds how many numbers are left free for exchanges that were not seen.
	maxHole = 1 << 20
	// maxRuns bounds the stored numbers of a sequence.
	maxRuns = 4096
)

// numbers gives exchanges their numbers, when they are first seen.
type numbers struct{ last int }

// sequence is the exchanges that one end began on one lane: those with numbers in sending order.
// Exchanges that were not seen keep theirs.
type sequence struct {
	last uint64 // exchange
	runs []numberRun
}

// numberRun is consecutive exchanges with consecutive numbers.
type numberRun struct {
	exchange, count uint64
	number          int
}

func (n *numbers) next() int {
	n.last++
	return n.last
}

// of returns the number of an exchange of a sequence.
func (n *numbers) of(s *sequence, exchange uint64) int {
	if exchange <= s.last {
		i := sort.Search(len(s.runs), func(i int) bool { return s.runs[i].exchange > exchange }) - 1
		if i >= 0 && exchange-s.runs[i].exchange < s.runs[i].count {
			return s.runs[i].number + int(exchange-s.runs[i].exchange)
		}
		return n.next() // longer ago than is stored
	}
	hole := min(exchange-s.last-1, maxHole)
	r := numberRun{exchange: exchange - hole, count: hole + 1, number: n.last + 1}
	n.last += int(hole) + 1
	s.last = exchange
	if k := len(s.runs) - 1; k >= 0 && s.runs[k].exchange+s.runs[k].count == r.exchange &&
		s.runs[k].number+int(s.runs[k].count) == r.number {
		s.runs[k].count += r.count
		return n.last
	}
	if len(s.runs) >= maxRuns {
		s.runs = slices.Delete(s.runs, 0, maxRuns/2)
	}
	s.runs = append(s.runs, r)
	return n.last
}
