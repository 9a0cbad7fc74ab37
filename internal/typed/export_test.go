package typed

import (
	"iter"

	"github.com/hhfr/hhfr/internal/shape"
)

// OwnShapes yields the own shapes of all kinds, in the order of their names; nil where there can be
// none.
func (s *Contract) OwnShapes() iter.Seq[*shape.Shape] {
	return func(yield func(*shape.Shape) bool) {
		for _, k := range s.all {
			made, err := own(k)
			if err != nil {
				made = nil
			}
			if !yield(made) {
				return
			}
		}
	}
}
