package learn

import "slices"

// mergeAttributes aligns attributes by name and layout; the values of markup are gathered, types
// widened.
func mergeAttributes(a, b []*attribute) (merged []*attribute, ok bool) {
	pairs, ok := align(len(a), len(b), func(i, j int) bool { return a[i].like(b[j]) })
	if !ok {
		return nil, false
	}
	i, j := 0, 0
	rest := func(toI, toJ int) {
		for ; i < toI; i++ {
			merged = append(merged, a[i].maybe())
		}
		for ; j < toJ; j++ {
			merged = append(merged, b[j].maybe())
		}
	}
	for _, p := range pairs {
		rest(p[0], p[1])
		x, y := *a[i], b[j]
		x.optional = x.optional || y.optional
		x.typ = widen(x.typ, y.typ)
		for _, v := range y.fixed {
			if !slices.ContainsFunc(x.fixed, func(w []part) bool { return slices.EqualFunc(v, w, samePart) }) {
				x.fixed = append(x.fixed[:len(x.fixed):len(x.fixed)], v)
			}
		}
		merged = append(merged, &x)
		i, j = i+1, j+1
	}
	rest(len(a), len(b))
	overfull := func(x *attribute) bool { return len(x.fixed) > maxFixed }
	return merged, len(merged) <= maxEntries && !slices.ContainsFunc(merged, overfull)
}

// align gives a longest common subsequence of two lists as pairs of indexes.
func align(n, k int, same func(i, j int) bool) (pairs [][2]int, ok bool) {
	from := 0
	for from < n && from < k && same(from, from) {
		pairs = append(pairs, [2]int{from, from})
		from++
	}
	rows, cols := n-from, k-from
	if rows == 0 || cols == 0 {
		return pairs, true
	}
	if rows*cols > maxAlign {
		return nil, false
	}
	longest := make([]uint16, (rows+1)*(cols+1))
	at := func(i, j int) *uint16 { return &longest[i*(cols+1)+j] }
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			if *at(i, j) = max(*at(i+1, j), *at(i, j+1)); same(from+i, from+j) {
				*at(i, j) = *at(i+1, j+1) + 1
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		switch {
		case same(from+i, from+j):
			pairs = append(pairs, [2]int{from + i, from + j})
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return pairs, true
}
