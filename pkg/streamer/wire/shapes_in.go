package wire

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/pkg/shape/program"

	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// numberedShape is what a number stands for. One that was found lacking is completed when the shape
// comes.
type numberedShape struct {
	name        [8]byte
	named       bool // the name is known: not where a shape came on a base that is not here
	fingerprint shape.Fingerprint
	whole       bool // the fingerprint is known
	program     *program.Program
	octets      int64
}

// Error names the shape, for who lacks it.
func (e *numberedShape) Error() string {
	switch {
	case e.whole:
		return e.fingerprint.URI()
	case e.named:
		return fmt.Sprintf("%s%x…", shape.URIPrefix, e.name)
	}
	return "a shape on a base that is not here"
}

// LackingShape is the URI of the shape that an error of code [Lacking] is about, or its beginning;
// "" for other errors.
func LackingShape(err error) string {
	var e *numberedShape
	if errors.As(err, &e) && e.named {
		return e.Error()
	}
	return ""
}

func entryOf(fp shape.Fingerprint, p *program.Program) *numberedShape {
	e := &numberedShape{name: frame.NameOf(fp), named: true, fingerprint: fp, whole: true, program: p}
	if p != nil {
		e.octets = int64(len(p.Shape().Octets()))
	}
	return e
}

// received is the table of numbers of a direction.
type received struct {
	cfg     *DecoderConfig
	pieces  frame.Pieces
	entries map[uint64]*numberedShape
	octets  int64
	bases   bases
	asked   map[uint64]*numberedShape // that the sender was asked for, also when a sync has ended the number since
}

// maxAsked bounds the shapes that were asked for and have not come, beside those under numbers,
// where somebody asks.
const maxAsked = 1024

func (t *received) init(cfg *DecoderConfig) {
	t.cfg, t.entries, t.asked = cfg, map[uint64]*numberedShape{}, map[uint64]*numberedShape{}
	t.pieces = frame.Pieces{MaxShapes: uint64(cfg.MaxShapes), MaxBytes: uint64(cfg.MaxShapeOctets)}
}

// name is how a sync names the shape behind a number.
func (t *received) name(number uint64) (name [8]byte, known bool) {
	if e := t.entries[number]; e != nil {
		return e.name, e.named
	}
	return name, false
}

// complete gives an entry the shape that it lacked, if that has come.
func (t *received) complete(e *numberedShape, p *program.Program) {
	if p == nil {
		return
	}
	octets := int64(len(p.Shape().Octets()))
	for _, listed := range t.entries {
		if listed == e {
			t.octets += octets
		}
	}
	e.program, e.octets = p, octets
}

// set has a number stand for a shape.
func (t *received) set(number uint64, e *numberedShape) error {
	if old := t.entries[number]; old != nil {
		t.octets -= old.octets
		delete(t.entries, number)
	}
	if len(t.entries) >= t.cfg.MaxShapes || t.octets+e.octets > t.cfg.MaxShapeOctets {
		return fmt.Errorf("%d shapes of %d octets stand under numbers", len(t.entries)+1, t.octets+e.octets)
	}
	t.octets += e.octets
	t.entries[number] = e
	return nil
}

// stand reports whether numbers stand for the shapes that a sync lists.
func (t *received) stand(shapes []frame.Announced) bool {
	for _, s := range shapes {
		if e := t.entries[s.Number]; e == nil || e.named && e.name != s.Name {
			return false
		}
	}
	return true
}

// list has the numbers stand that a sync lists, and no others.
func (t *received) list(shapes []frame.Announced) {
	before := t.entries
	t.entries, t.octets = make(map[uint64]*numberedShape, len(shapes)), 0
	for _, s := range shapes {
		e := before[s.Number]
		if e == nil || !e.named || e.name != s.Name {
			e = &numberedShape{name: s.Name, named: true}
			if p := t.cfg.Named(s.Name); p != nil {
				e = entryOf(p.Shape().Fingerprint(), p)
			}
		}
		t.entries[s.Number] = e
		t.octets += e.octets
	}
}

// define makes of a packed shape what a number stands for.
func (t *received) define(packed []byte) (*numberedShape, error) {
	octets, err := transit.Unpack(packed, func(name transit.Name) []byte {
		if base := t.bases.find(name); base != nil {
			return base
		}
		if p := t.cfg.Named(name); p != nil {
			return p.Shape().Octets()
		}
		return nil
	})
	if errors.Is(err, &transit.Error{Code: transit.NoBase}) && t.cfg.MaxHeld < 0 {
		return &numberedShape{}, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := shape.Parse(octets)
	if err != nil {
		return nil, err
	}
	t.bases.keep(s, len(packed), sketch{})
	return entryOf(s.Fingerprint(), t.cfg.Shapes.Keep(s)), nil
}
