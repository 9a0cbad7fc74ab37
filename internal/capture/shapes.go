package capture

import (
	"context"
	"fmt"
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
	seen   map[shape.Fingerprint]*program.Program
	stored map[shape.Fingerprint]*program.Program // nil: the store does not have it
	names  map[transit.Name]*alike
	order  []shape.Fingerprint // keys of seen, the oldest first
	size   int
}

func newShapes(ctx context.Context, store ctxstore.Store) *shapes {
	return &shapes{ctx: ctx, store: store, seen: map[shape.Fingerprint]*program.Program{},
		stored: map[shape.Fingerprint]*program.Program{}, names: map[transit.Name]*alike{}}
}

// alike are the shapes whose fingerprints begin with one name.
type alike struct {
	all    []shape.Fingerprint
	looked bool // the store was searched
}

func (s *shapes) alike(name transit.Name) *alike {
	if s.names[name] == nil {
		s.names[name] = &alike{}
	}
	return s.names[name]
}

func (a *alike) add(fp shape.Fingerprint) {
	if !slices.Contains(a.all, fp) {
		a.all = append(a.all, fp)
	}
}

// Keep implements [wire.Shapes].
func (s *shapes) Keep(one *shape.Shape) *program.Program {
	fp := one.Fingerprint()
	p := s.seen[fp]
	if p != nil {
		return p
	}
	p = program.Compile(one)
	s.seen[fp] = p
	s.alike(transit.NameOf(fp)).add(fp)
	s.order = append(s.order, fp)
	for s.size += p.Size(); s.size > maxKept && len(s.order) > 1; s.order = s.order[1:] {
		s.drop(s.order[0])
	}
	return p
}

// drop forgets a shape that came; streams that use it still have it.
func (s *shapes) drop(fp shape.Fingerprint) {
	s.size -= s.seen[fp].Size()
	delete(s.seen, fp)
	if name := transit.NameOf(fp); s.Find(fp) == nil {
		a := s.names[name]
		if a.all = slices.DeleteFunc(a.all,
			func(other shape.Fingerprint) bool { return other == fp }); len(a.all) == 0 {
			delete(s.names, name)
		}
	}
}

// Find implements [wire.Shapes].
func (s *shapes) Find(fp shape.Fingerprint) *program.Program {
	if p := s.seen[fp]; p != nil || s.store == nil {
		return p
	}
	p, looked := s.stored[fp]
	if !looked {
		octets, _ := ctxstore.Shapes{Store: s.store}.Get(s.ctx, fp) // as in search
		if one, err := shape.Parse(octets); err == nil && one.Fingerprint() == fp {
			p = program.Compile(one)
		}
		s.stored[fp] = p
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
		var a alike
		for _, fp := range s.order {
			if transit.OwnNameOf(fp) == name {
				a.add(fp)
			}
		}
		s.search(&a, name[:])
		if len(a.all) != 1 {
			return nil
		}
		p := s.Find(a.all[0])
		if p == nil {
			return nil
		}
		own = p.Shape()
	}
	return binary.StyledOctets(own, style)
}

// search adds the shapes of the store whose fingerprints begin so.
func (s *shapes) search(a *alike, beginning []byte) {
	if s.store == nil {
		return
	}
	for info, err := range s.store.List(s.ctx, fmt.Sprintf("%s%x", shape.URIPrefix, beginning)) {
		if err != nil {
			continue // [storeReader] remembers it
		}
		if fp, ok := ctxstore.ParseShapeURI(info.URI); ok {
			a.add(fp)
		}
	}
}

// named returns the shape whose fingerprint begins so; nil if there is none, or more than one.
func (s *shapes) named(name [8]byte) *program.Program {
	a := s.alike(name)
	if !a.looked {
		a.looked = true
		s.search(a, name[:])
	}
	if len(a.all) != 1 {
		return nil
	}
	return s.Find(a.all[0])
}

// count returns how many came in full.
func (s *shapes) count() int { return len(s.seen) }
