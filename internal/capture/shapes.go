package capture

import (
	"context"
	"slices"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// shapes are those that came in full, and those of the store. [wire.Decoder] searches them.
type shapes struct {
	ctx    context.Context
	own    func(transit.OwnName) *shape.Shape // nil: no descriptions
	store  ctxstore.Store                     // nil: none
	seen   recentShapes
	stored recentShapes                         // nil: the store does not have it
	names  map[transit.Name][]shape.Fingerprint // of seen
	index  storeIndex
}

func newShapes(ctx context.Context, store ctxstore.Store) *shapes {
	return &shapes{ctx: ctx, store: store, names: map[transit.Name][]shape.Fingerprint{}}
}

// Keep implements [wire.Shapes].
func (s *shapes) Keep(one *shape.Shape) *program.Program {
	fp := one.Fingerprint()
	if p, there := s.seen.get(fp); there {
		return p
	}
	p := program.Compile(one)
	name := transit.NameOf(fp)
	s.names[name] = append(s.names[name], fp)
	for _, gone := range s.seen.put(fp, p) {
		s.forget(gone)
	}
	return p
}

// forget removes the name of a shape that came; streams that use it still have it.
func (s *shapes) forget(fp shape.Fingerprint) {
	name := transit.NameOf(fp)
	rest := slices.DeleteFunc(s.names[name], func(other shape.Fingerprint) bool { return other == fp })
	if s.names[name] = rest; len(rest) == 0 {
		delete(s.names, name)
	}
}

// Find implements [wire.Shapes].
func (s *shapes) Find(fp shape.Fingerprint) *program.Program {
	if p, there := s.seen.get(fp); there || s.store == nil {
		return p
	}
	p, looked := s.stored.get(fp)
	if !looked {
		octets, _ := ctxstore.Shapes{Store: s.store}.Get(s.ctx, fp) // [storeReader] remembers errors
		if one, err := shape.Parse(octets); err == nil && one.Fingerprint() == fp {
			p = program.Compile(one)
		}
		s.stored.put(fp, p)
	}
	return p
}

// Styled implements [wire.OwnShapes]: own shapes are those of descriptions, those that peers with a
// description have stored, and those that recordings begin with.
func (s *shapes) Styled(name transit.OwnName, style string) []byte {
	var own *shape.Shape
	if s.own != nil {
		own = s.own(name)
	}
	if own == nil {
		var came []shape.Fingerprint
		for _, fp := range s.seen.order {
			if transit.OwnNameOf(fp) == name {
				came = append(came, fp)
			}
		}
		p := s.only(came, name[:])
		if p == nil {
			return nil
		}
		own = p.Shape()
	}
	return binary.StyledOctets(own, style)
}

// named returns the shape whose fingerprint begins so; nil if there is none, or more than one.
func (s *shapes) named(name [8]byte) *program.Program { return s.only(s.names[name], name[:]) }

// only returns the shape whose fingerprint begins so, of those that came and of the store; nil if
// there is none, or more than one.
func (s *shapes) only(came []shape.Fingerprint, beginning []byte) *program.Program {
	all := came
	if s.store != nil {
		for _, fp := range s.index.find(s.ctx, s.store, beginning, len(came) > 0) {
			if !slices.Contains(came, fp) {
				all = append(all[:len(all):len(all)], fp)
			}
		}
	}
	if len(all) != 1 {
		return nil
	}
	return s.Find(all[0])
}

// count returns how many came in full.
func (s *shapes) count() int { return len(s.seen.programs) }
