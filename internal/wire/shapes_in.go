package wire

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/shape/program"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

// numberedShape is what a number stands for. One that was found lacking is completed when the shape
// comes.
type numberedShape struct {
	name        [8]byte
	named       bool  // the name is known: not where a shape came on a base that is not here
	whole       bool  // the fingerprint is known
	uses        int32 // by parts of messages that are open
	fingerprint shape.Fingerprint
	base        *transit.Error // which base is not here
	program     *program.Program
	octets      int64
	// plain: it is the plain shape of a text that announces it; unread: that was not read yet.
	plain, unread bool
}

// Error names the shape, for who lacks it.
func (e *numberedShape) Error() string {
	switch {
	case e.whole:
		return e.fingerprint.URI()
	case e.named:
		return fmt.Sprintf("%s%x…", shape.URIPrefix, e.name)
	}
	if e.base != nil && e.base.Own {
		return "a shape on " + shape.URIPrefix + e.base.Base
	}
	if e.plain {
		return "the shape of a text that was not read"
	}
	if e.base == nil {
		return "a shape that is here in part only"
	}
	return "a shape on a base that is not here"
}

// LackingOwn is the beginning of the URI of the own shape of a description, if that is what an
// error of code [Lacking] is about; "" for other errors.
func LackingOwn(err error) string {
	var e *numberedShape
	if errors.As(err, &e) && e.base != nil && e.base.Own {
		return shape.URIPrefix + e.base.Base
	}
	return ""
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

// same reports whether both are known to be the same shape.
func (e *numberedShape) same(o *numberedShape) bool {
	return e.whole && o.whole && e.fingerprint == o.fingerprint
}

// awaits reports whether another entry is what this one lacks.
func (e *numberedShape) awaits(o *numberedShape) bool {
	switch {
	case e.program != nil || !o.whole:
		return false
	case e.plain: // a text that is still to be read gives its shape itself
		return !e.unread && o.program != nil && (!e.named || e.name == o.name)
	case e.base != nil:
		return o.program != nil && e.base.Checked && e.base.Check == transit.CheckOf(o.fingerprint)
	}
	return e.whole && e.fingerprint == o.fingerprint
}

// receivedShapes is the table of numbers of a direction.
type receivedShapes struct {
	cfg     *DecoderConfig
	pieces  frame.Pieces
	entries few.Map[uint64, *numberedShape]
	octets  int64
	bases   bases
	// asked are those that the sender was asked for, also when a sync has ended the number since.
	asked few.Map[uint64, *numberedShape]
}

// maxAsked bounds the shapes that were asked for and have not come, beside those under numbers,
// where somebody asks.
const maxAsked = 1024

func (t *receivedShapes) init(cfg *DecoderConfig) {
	t.cfg = cfg
	t.pieces = frame.Pieces{MaxShapes: uint64(cfg.MaxShapes), MaxBytes: uint64(cfg.MaxShapeOctets)}
}

// name is how a sync names the shape behind a number.
func (t *receivedShapes) name(number uint64) (name [8]byte, known bool) {
	if e := t.entries.Get(number); e != nil {
		return e.name, e.named
	}
	return name, false
}

// Base implements [transit.BaseFinder].
func (t *receivedShapes) Base(name transit.Name) []byte {
	if base := t.bases.find(name); base != nil {
		return base.octets
	}
	if p := t.cfg.Named(name); p != nil {
		return p.Shape().Octets()
	}
	return nil
}

// Styled implements [transit.BaseFinder].
func (t *receivedShapes) Styled(name transit.OwnName, style string) []byte {
	if own, ok := t.cfg.Shapes.(OwnShapes); ok {
		return own.Styled(name, style)
	}
	return nil
}

// complete gives an entry the shape that it lacked, if that has come.
func (t *receivedShapes) complete(e *numberedShape, p *program.Program) {
	if p == nil {
		return
	}
	octets := int64(len(p.Shape().Octets()))
	for _, listed := range t.entries.All {
		if listed == e {
			t.octets += octets
		}
	}
	e.program, e.octets = p, octets
	if !e.whole {
		e.fingerprint, e.whole = p.Shape().Fingerprint(), true
		e.name, e.named = frame.NameOf(e.fingerprint), true
	}
}

// set has a number stand for a shape.
func (t *receivedShapes) set(number uint64, e *numberedShape) error {
	if old := t.entries.Get(number); old != nil {
		t.octets -= old.octets
		t.entries.Delete(number)
	}
	if t.entries.Len() >= t.cfg.MaxShapes || t.octets+e.octets > t.cfg.MaxShapeOctets {
		return fmt.Errorf("%d shapes of %d octets stand under numbers", t.entries.Len()+1, t.octets+e.octets)
	}
	t.octets += e.octets
	t.entries.Put(number, e)
	return nil
}

// stand reports whether numbers stand for the shapes that a sync lists.
func (t *receivedShapes) stand(shapes []frame.Announced) bool {
	for _, s := range shapes {
		if e := t.entries.Get(s.Number); e == nil || e.named && e.name != s.Name {
			return false
		}
	}
	return true
}

// list has the numbers stand that a sync lists, and no others.
func (t *receivedShapes) list(shapes []frame.Announced) {
	before := t.entries
	t.entries, t.octets = few.Map[uint64, *numberedShape]{}, 0
	for _, s := range shapes {
		e := before.Get(s.Number)
		if e != nil && e.plain && !e.named { // the text that announces it waits, or was not read
			e.name, e.named = s.Name, true
			if !e.unread && e.program == nil {
				if p := t.cfg.Named(s.Name); p != nil {
					e.program, e.octets = p, int64(len(p.Shape().Octets()))
					e.fingerprint, e.whole = p.Shape().Fingerprint(), true
				}
			}
		}
		if e == nil || !e.named || e.name != s.Name {
			e = &numberedShape{name: s.Name, named: true}
			if p := t.cfg.Named(s.Name); p != nil {
				e = entryOf(p.Shape().Fingerprint(), p)
			}
		}
		t.entries.Put(s.Number, e)
		t.octets += e.octets
	}
}

// define makes of a packed shape what a number stands for. Where its base is not here, and the
// sender can be asked or nobody can, the entry has no program.
func (t *receivedShapes) define(packed []byte) (*numberedShape, error) {
	octets, err := transit.Unpack(packed, t)
	var missing *transit.Error
	if errors.As(err, &missing) && missing.Code == transit.NoBase && (t.cfg.MaxHeld < 0 || missing.Checked) {
		return &numberedShape{base: missing}, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := shape.Parse(octets)
	if err != nil {
		return nil, err
	}
	p := t.cfg.Shapes.Keep(s)
	if p != nil {
		s = p.Shape() // the one that all streams of this end share
	}
	t.bases.keep(s, len(packed), nil)
	return entryOf(s.Fingerprint(), p), nil
}
