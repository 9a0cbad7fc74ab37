package streamer

import (
	"fmt"
	"maps"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// shape takes what the other end says of a number of its own, or asks of one of ours.
func (r *receiver) shape(f frame.Shape) error {
	s, at := r.s, r.input.at
	switch f.Form {
	case frame.Unknown:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.referred[f.Number] {
			delete(s.referred, f.Number)
			s.lacks.push(f.Number)
			s.wakeWriter()
		}
		return nil
	case frame.Reference:
		if err := r.mayAnnounce(f.Number, at); err != nil {
			return err
		}
		if err := r.refer(f.Number, f.Fingerprint); err != nil {
			return err
		}
		return r.release()
	default:
		full, err := r.pieces.Add(f, at)
		if err != nil || full == nil {
			return err
		}
		if err := r.mayAnnounce(f.Number, at); err != nil {
			return err
		}
		fp, err := s.coder.Define(f.Number, full)
		if err != nil {
			return err
		}
		r.stands(f.Number, fp)
		delete(r.asked, f.Number)
		return r.release()
	}
}

// list has the numbers stand that a sync lists, and no others.
func (r *receiver) list(shapes []frame.Announced, at int64) error {
	if len(shapes) > r.s.maxShapes {
		return &Error{Code: BeyondLimits, At: at, Err: fmt.Errorf("more than %d shape numbers", r.s.maxShapes)}
	}
	before := r.announced
	r.announced = make(map[uint64][32]byte, len(shapes))
	for _, a := range shapes {
		fp, ok := before[a.Number]
		if !ok || frame.NameOf(fp) != a.Name {
			return &Error{Code: WrongCheck, At: at, Err: fmt.Errorf("shape number %d does not stand for %x…", a.Number, a.Name)}
		}
		r.announced[a.Number] = fp
	}
	for number := range before {
		if _, ok := r.announced[number]; !ok {
			r.s.coder.Forget(number)
		}
	}
	maps.DeleteFunc(r.asked, func(number uint64, _ [32]byte) bool {
		_, ok := r.announced[number]
		return !ok && !r.held.waitsFor(number)
	})
	return nil
}

// nameOf is how a sync names the shape behind a number.
func (r *receiver) nameOf(number uint64) (name [8]byte, known bool) {
	fp, known := r.announced[number]
	return frame.NameOf(fp), known
}

func (r *receiver) mayAnnounce(number uint64, at int64) error {
	if _, ok := r.announced[number]; !ok && len(r.announced) >= r.s.maxShapes {
		return &Error{Code: BeyondLimits, At: at, Err: fmt.Errorf("more than %d shape numbers", len(r.announced))}
	}
	return nil
}

// stands takes note of what a number stands for. What still waits for another shape that it stood for will never be joined.
func (r *receiver) stands(number uint64, fp [32]byte) {
	r.announced[number] = fp
	if was, ok := r.asked[number]; ok && was != fp {
		delete(r.asked, number)
		r.giveUpHeld()
	}
}

// refer takes note of a fingerprint, and asks for its shape if it is not there.
func (r *receiver) refer(number uint64, fp [32]byte) error {
	r.stands(number, fp)
	known, err := r.s.coder.Refer(number, fp)
	if err != nil {
		return err
	}
	if known {
		delete(r.asked, number)
		return nil
	}
	if _, ok := r.asked[number]; !ok {
		r.asked[number] = fp
		r.s.mu.Lock()
		r.s.controlLocked(frame.Shape{Number: number, Form: frame.Unknown})
		r.s.mu.Unlock()
	}
	return nil
}
