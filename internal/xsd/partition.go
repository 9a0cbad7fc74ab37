package xsd

import (
	"cmp"
	"slices"
)

// classes numbers the nodes, those that describe the same alike: it begins with one class for each
// line, and splits classes by what their nodes refer to, until nothing changes. That is Hopcroft's
// algorithm, whose cost is not that of the square for any input: of the two parts of a class, only
// the smaller is looked at again.
func (g *graph) classes() []int {
	p := newPartition(g.nodes)
	into := make([][]edge, len(g.nodes))
	for from, n := range g.nodes {
		for at, to := range n.next {
			into[to] = append(into[to], edge{at, from})
		}
	}
	for len(p.todo) > 0 {
		last := len(p.todo) - 1
		class := p.todo[last]
		p.todo, p.waits[class] = p.todo[:last], false
		var edges []edge
		for _, to := range p.order[p.start[class]:p.end[class]] {
			edges = append(edges, into[to]...)
		}
		slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
		for len(edges) > 0 {
			n := 1
			for n < len(edges) && edges[n].at == edges[0].at {
				n++
			}
			p.split(edges[:n])
			edges = edges[n:]
		}
	}
	return p.class
}

// edge is a reference: at which place of the line of which node it stands.
type edge struct{ at, from int }

// partition is nodes in classes.
type partition struct {
	class []int // of each node
	order []int // the nodes, those of a class side by side
	place []int // of each node in that order
	// start and end are where the nodes of each class stand.
	start, end []int
	// todo are the classes by which others may have to be split, and waits whether one is there.
	todo  []int
	waits []bool
	// marked are how many nodes at the beginning of each class are being split off.
	marked []int
}

func newPartition(nodes []canonicalNode) *partition {
	p := &partition{class: make([]int, len(nodes)), place: make([]int, len(nodes))}
	of := map[string][]int{}
	var lines []string
	for i, n := range nodes {
		if of[n.line] == nil {
			lines = append(lines, n.line)
		}
		of[n.line] = append(of[n.line], i)
	}
	for _, text := range lines {
		p.order = append(p.order, of[text]...)
		p.add(len(p.order)-len(of[text]), len(p.order))
	}
	for i, node := range p.order {
		p.place[node] = i
	}
	return p
}

// add adds a class by which others may have to be split.
func (p *partition) add(start, end int) {
	class := len(p.start)
	p.start, p.end, p.marked = append(p.start, start), append(p.end, end), append(p.marked, 0)
	p.todo, p.waits = append(p.todo, class), append(p.waits, true)
	for _, node := range p.order[start:end] {
		p.class[node] = class
	}
}

// split parts each class into the nodes that one of the edges comes from, and the others. No two
// edges come from one node.
func (p *partition) split(edges []edge) {
	var touched []int
	for _, e := range edges {
		class := p.class[e.from]
		if p.marked[class] == 0 {
			touched = append(touched, class)
		}
		p.swap(p.place[e.from], p.start[class]+p.marked[class])
		p.marked[class]++
	}
	for _, class := range touched {
		start, end := p.start[class], p.end[class]
		middle := start + p.marked[class]
		p.marked[class] = 0
		switch { // the smaller part is the new class
		case middle == end:
		case middle-start <= end-middle:
			p.start[class] = middle
			p.add(start, middle)
		default:
			p.end[class] = middle
			p.add(middle, end)
		}
	}
}

func (p *partition) swap(i, j int) {
	p.order[i], p.order[j] = p.order[j], p.order[i]
	p.place[p.order[i]], p.place[p.order[j]] = i, j
}
