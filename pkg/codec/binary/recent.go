package binary

import (
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape/program"
)

// recent are shapes that this stream carried, either way: the peer refers to them as to what is
// here for sure, also when book and store have forgotten them. At most as many as a table has;
// those carried or looked for longest ago go.
type recent struct {
	mu       sync.Mutex
	programs map[Fingerprint]*program.Program
	order    []Fingerprint
	sum      int64
}

func (r *recent) keep(p *program.Program, opt *Options) {
	fp := p.Shape().Fingerprint()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.programs[fp] != nil {
		r.touch(fp)
		return
	}
	if r.programs == nil {
		r.programs = map[Fingerprint]*program.Program{}
	}
	r.programs[fp] = p
	r.order = append(r.order, fp)
	r.sum += int64(len(p.Shape().Octets()))
	for len(r.order) > opt.MaxShapes || r.sum > opt.MaxShapeBytes {
		r.sum -= int64(len(r.programs[r.order[0]].Shape().Octets()))
		delete(r.programs, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent) touch(fp Fingerprint) {
	i := slices.Index(r.order, fp)
	copy(r.order[i:], r.order[i+1:])
	r.order[len(r.order)-1] = fp
}

// find is nil for what is not kept.
func (r *recent) find(fp Fingerprint) *program.Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.programs[fp]
}
