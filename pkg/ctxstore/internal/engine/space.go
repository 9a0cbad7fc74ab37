package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Space is what entries may take in a store while one more is put, in bytes.
type Space struct {
	At, URI string // of the entry that is put
	Max     int64
	Need    int64  // by how many the entry is longer than the one that it replaces
	Hint    string // what to do where there is no space
}

// Shape is one that may be dropped.
type Shape struct {
	Name string
	Size int64
	Used int64 // when it was used last; on any scale
}

// mostShapes is what shapes may take beside the one that is put.
func (s Space) mostShapes() int64 {
	if _, shape := ctxstore.ParseShapeURI(s.URI); shape {
		return ctxstore.MaxShapeBytes
	}
	return math.MaxInt64
}

// Fits reports whether nothing need be dropped where so much is used.
func (s Space) Fits(used int64) bool { return used+s.Need <= min(s.Max, s.mostShapes()) }

// Make drops the least recently used shapes until a tenth is free, of the space or of that for
// shapes, so that not every entry that is put has to. others is what all else takes; drop reports
// whether it did.
func (s Space) Make(others int64, shapes []Shape, drop func(Shape) bool) error {
	if others+s.Need > s.Max {
		return &ctxstore.Error{
			Code: ctxstore.Full,
			URI:  s.URI,
			At:   s.At,
			Err:  fmt.Errorf("%d more bytes, the limit is %d", s.Need, s.Max),
			Hint: "raise the limit (MaxBytes; of hhfr --store-size), " + s.Hint,
		}
	}
	most, mostShapes := s.Max, s.mostShapes()
	ofShapes := s.Need
	for _, shape := range shapes {
		ofShapes += shape.Size
	}
	if others+ofShapes > most {
		most -= most / 10
	}
	if ofShapes > mostShapes {
		mostShapes -= mostShapes / 10
	}
	slices.SortStableFunc(shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Used, b.Used), cmp.Compare(a.Name, b.Name))
	})
	for _, shape := range shapes {
		if others+ofShapes <= most && ofShapes <= mostShapes {
			break
		}
		if drop(shape) {
			ofShapes -= shape.Size
		}
	}
	return nil
}
