package inspector

// Pair is a line of one text, beside a line of another; -1: there is none.
type Pair struct {
	Left, Right int
	Same        bool
}

// mostCells bounds the table of a comparison; beyond it, lines between a common beginning and a
// common end are compared in their order.
const mostCells = 4 << 20

// Pairs puts the lines of two texts beside each other, so that as many as possible are the same.
func Pairs(left, right []string) (all []Pair) {
	begin := 0
	for begin < min(len(left), len(right)) && left[begin] == right[begin] {
		all = append(all, Pair{begin, begin, true})
		begin++
	}
	end := 0
	for end < min(len(left), len(right))-begin && left[len(left)-1-end] == right[len(right)-1-end] {
		end++
	}
	all = between(all, left[:len(left)-end], right[:len(right)-end], begin)
	for k := end; k > 0; k-- {
		all = append(all, Pair{len(left) - k, len(right) - k, true})
	}
	return all
}

// between adds the lines from begin on, by their longest common subsequence.
func between(all []Pair, left, right []string, begin int) []Pair {
	n, m := len(left)-begin, len(right)-begin
	if n == 0 || m == 0 || (n+1)*(m+1) > mostCells {
		return changed(all, begin, len(left), begin, len(right))
	}
	// longest[i*(m+1)+j] is the length of that of the lines from i and j on.
	longest := make([]int32, (n+1)*(m+1))
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			at := i*(m+1) + j
			if left[begin+i] == right[begin+j] {
				longest[at] = longest[at+m+2] + 1
			} else {
				longest[at] = max(longest[at+1], longest[at+m+1])
			}
		}
	}
	i, j, fromI, fromJ := 0, 0, 0, 0
	for i < n && j < m {
		switch at := i*(m+1) + j; {
		case left[begin+i] == right[begin+j]:
			all = changed(all, begin+fromI, begin+i, begin+fromJ, begin+j)
			all = append(all, Pair{begin + i, begin + j, true})
			i, j = i+1, j+1
			fromI, fromJ = i, j
		case longest[at+m+1] >= longest[at+1]:
			i++
		default:
			j++
		}
	}
	return changed(all, begin+fromI, len(left), begin+fromJ, len(right))
}

// changed adds lines that have nothing in common, beside each other.
func changed(all []Pair, left, leftEnd, right, rightEnd int) []Pair {
	for left < leftEnd || right < rightEnd {
		p := Pair{Left: -1, Right: -1}
		if left < leftEnd {
			p.Left = left
			left++
		}
		if right < rightEnd {
			p.Right = right
			right++
		}
		all = append(all, p)
	}
	return all
}

// Span is what differs between two lines: bytes From to To of each, after a common beginning and
// before a common end.
func Span(left, right string) (from, leftTo, rightTo int) {
	least := min(len(left), len(right))
	for from < least && left[from] == right[from] {
		from++
	}
	end := 0
	for end < least-from && left[len(left)-1-end] == right[len(right)-1-end] {
		end++
	}
	for from > 0 && !boundary(left, from) {
		from--
	}
	for end > 0 && !boundary(left, len(left)-end) {
		end--
	}
	return from, len(left) - end, len(right) - end
}

// boundary reports whether a character begins at a byte, or the text ends there.
func boundary(s string, at int) bool { return at >= len(s) || s[at]&0xc0 != 0x80 }
