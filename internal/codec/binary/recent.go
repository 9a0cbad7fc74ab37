package binary

import (
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// carriedShapes are shapes that this stream carried, either way: the peer refers to them as to what
// is here for sure, also when book and store have forgotten them. At most as many as a table has;
// those carried or looked for longest ago go.
type carriedShapes struct {
	mu       sync.Mutex
	programs few.Map[Fingerprint, *program.Program]
	order    []Fingerprint
	sum      int64
}

func (r *carriedShapes) keep(p *program.Program, opt *Options) {
	fp := p.Shape().Fingerprint()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.programs.Get(fp) != nil {
		r.touch(fp)
		return
	}
	r.programs.Put(fp, p)
	r.order = append(r.order, fp)
	r.sum += int64(len(p.Shape().Octets()))
	for len(r.order) > opt.MaxShapes || r.sum > opt.MaxShapeBytes {
		r.sum -= int64(len(r.programs.Get(r.order[0]).Shape().Octets()))
		r.programs.Delete(r.order[0])
		r.order = r.order[1:]
	}
}

func (r *carriedShapes) touch(fp Fingerprint) {
	i := slices.Index(r.order, fp)
	copy(r.order[i:], r.order[i+1:])
	r.order[len(r.order)-1] = fp
}

// find is nil for what is not kept.
func (r *carriedShapes) find(fp Fingerprint) *program.Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.programs.Get(fp)
}

// last lists the shapes carried last, at most so many, in their order.
func (r *carriedShapes) last(most int) (fps []shape.Fingerprint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fp := range r.order[max(0, len(r.order)-most):] {
		fps = append(fps, fp)
	}
	return fps
}
