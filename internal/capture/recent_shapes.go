package capture

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// recentShapes are the programs of shapes by fingerprint, as many as fit maxKept: the oldest go.
type recentShapes struct {
	programs map[shape.Fingerprint]*program.Program
	order    []shape.Fingerprint // the oldest first
	size     int                 // bytes
}

// entryCost is what a shape counts besides its program, in bytes.
const entryCost = 256

func costOf(p *program.Program) int {
	if p == nil {
		return entryCost
	}
	return entryCost + p.Size()
}

func (r *recentShapes) get(fp shape.Fingerprint) (p *program.Program, there bool) {
	p, there = r.programs[fp]
	return p, there
}

// put adds a shape that is not there, and returns those that go for it.
func (r *recentShapes) put(fp shape.Fingerprint, p *program.Program) (gone []shape.Fingerprint) {
	if r.programs == nil {
		r.programs = map[shape.Fingerprint]*program.Program{}
	}
	r.programs[fp] = p
	r.order = append(r.order, fp)
	n := 0
	for r.size += costOf(p); r.size > maxKept && n < len(r.order)-1; n++ {
		r.size -= costOf(r.programs[r.order[n]])
		delete(r.programs, r.order[n])
	}
	gone, r.order = r.order[:n:n], r.order[n:]
	return gone
}
