package capture

import (
	"slices"
	"sort"
)

// maxSpans bounds the runs of a [numberSet].
const maxSpans = 1024

// numberSet is a set of message numbers, as runs of consecutive ones that ascend. Where there are
// too many, the lowest gap is forgotten: its numbers count as members from then on.
type numberSet struct {
	spans     [][2]uint64
	forgotten uint64 // numbers that are only taken for members
}

// add adds the numbers from first to last, and reports how many were not in the set.
func (s *numberSet) add(first, last uint64) (added uint64) {
	// The runs from i on end at first-1 or above; those before j begin at last+1 or below.
	i := sort.Search(len(s.spans), func(k int) bool { return s.spans[k][1]+1 >= first })
	j := sort.Search(len(s.spans), func(k int) bool { return s.spans[k][0] > last+1 })
	added = last - first + 1
	from, to := first, last
	for _, run := range s.spans[i:j] {
		low, high := max(run[0], first), min(run[1], last)
		if low <= high {
			added -= high - low + 1
		}
		from, to = min(from, run[0]), max(to, run[1])
	}
	s.spans = slices.Replace(s.spans, i, j, [2]uint64{from, to})
	if len(s.spans) > maxSpans {
		s.forgotten += s.spans[1][0] - s.spans[0][1] - 1
		s.spans[1][0] = s.spans[0][0]
		s.spans = slices.Delete(s.spans, 0, 1)
	}
	return added
}

// count is how many numbers were added.
func (s *numberSet) count() (n uint64) {
	for _, run := range s.spans {
		n += run[1] - run[0] + 1
	}
	return n - s.forgotten
}

// highest is the highest number; 0: there is none.
func (s *numberSet) highest() uint64 {
	if len(s.spans) == 0 {
		return 0
	}
	return s.spans[len(s.spans)-1][1]
}

// upTo is the number up to which all are in the set, from 1 on.
func (s *numberSet) upTo() uint64 {
	if len(s.spans) == 0 || s.spans[0][0] > 1 {
		return 0
	}
	return s.spans[0][1]
}

// gaps are the numbers that are missing below the highest, as runs.
func (s *numberSet) gaps() (list [][2]uint64) {
	next := uint64(1)
	for _, run := range s.spans {
		if run[0] > next {
			list = append(list, [2]uint64{next, run[0] - 1})
		}
		next = run[1] + 1
	}
	return list
}
