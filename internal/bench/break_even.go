package bench

import "slices"

// BreakEven is the number of messages from which hhfr is at least as fast as plain SOAP.
type BreakEven struct {
	Service string     `json:"service"` // as in the cells
	Size    int        `json:"size"`    // items in a message
	Way     SessionWay `json:"way"`     // the way of hhfr
	Against SessionWay `json:"against"` // the way of plain SOAP
	// number of messages from which it is as fast, of the lengths measured; against gzip within 1
	// %; 0: none
	N     int     `json:"n"`
	First float64 `json:"shortest"` // time of the shortest session, divided by that of plain SOAP
	Last  float64 `json:"longest"`  // the same of the longest
}

// gzipMargin is how much longer than plain SOAP with gzip a session may take to count as equally
// fast.
const gzipMargin = 0.01

// BreakEvens compares the ways of hhfr with those of plain SOAP, in cells of one service, size and
// link.
func BreakEvens(cells []Cell) (list []BreakEven) {
	for _, ours := range ways {
		for _, theirs := range ways {
			if b := breakEvenOf(ofWay(cells, ours.name), ofWay(cells, theirs.name),
				theirs.gzip); ours.rival(theirs.manner) && b != nil {
				b.Service, b.Size, b.Way, b.Against = cells[0].Service, cells[0].Size, ours.name, theirs.name
				list = append(list, *b)
			}
		}
	}
	return list
}

// ofWay are the cells of a way, by messages.
func ofWay(cells []Cell, w SessionWay) map[int]Cell {
	list := map[int]Cell{}
	for _, c := range cells {
		if c.Way == w {
			list[c.N] = c
		}
	}
	return list
}

// breakEvenOf compares the lengths that both have; nil if there are none.
func breakEvenOf(ours, theirs map[int]Cell, gzip bool) *BreakEven {
	var counts []int
	for n := range ours {
		if _, both := theirs[n]; both {
			counts = append(counts, n)
		}
	}
	if len(counts) == 0 {
		return nil
	}
	slices.Sort(counts)
	limit := 1.0
	if gzip {
		limit += gzipMargin
	}
	ratio := func(n int) float64 { return ours[n].Millis / theirs[n].Millis }
	b := &BreakEven{First: ratio(counts[0]), Last: ratio(counts[len(counts)-1])}
	for _, n := range slices.Backward(counts) {
		if ratio(n) > limit {
			break
		}
		b.N = n
	}
	return b
}
