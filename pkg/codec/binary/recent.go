package binary

import (
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
)

// recent are shapes that this stream carried, either way, and that stand under no number any more: the other end refers to them as to what is here for sure, also when book and
// store have forgotten them. At most as many as a table has; those given up longest ago go.
type recent struct {
	mu       sync.Mutex
	programs map[Fingerprint]*shape.Program
	order    []Fingerprint
	sum      int64
}

func (r *recent) keep(p *shape.Program, opt *Options) {
	s := p.Shape()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.programs[s.Fingerprint()] != nil {
		return
	}
	if r.programs == nil {
		r.programs = map[Fingerprint]*shape.Program{}
	}
	r.programs[s.Fingerprint()] = p
	r.order = append(r.order, s.Fingerprint())
	r.sum += int64(len(s.Octets()))
	for len(r.order) > opt.MaxShapes || r.sum > opt.MaxShapeBytes {
		r.sum -= int64(len(r.programs[r.order[0]].Shape().Octets()))
		delete(r.programs, r.order[0])
		r.order = r.order[1:]
	}
}

// find is nil for what is not kept.
func (r *recent) find(fp Fingerprint) *shape.Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.programs[fp]
}
