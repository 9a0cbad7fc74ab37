package streamer

import (
	"fmt"

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
		if err := r.announce(f.Number, at); err != nil {
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
		if err := r.announce(f.Number, at); err != nil {
			return err
		}
		r.announced[f.Number] = false
		known, err := s.coder.Define(f.Number, full)
		if err != nil {
			return err
		}
		if !known {
			r.ask(f.Number)
		}
		return r.release()
	}
}

// forget gives up the numbers whose announcement a sync ended, and that nothing held names.
func (r *receiver) forget(before map[uint64]bool) {
	for number := range before {
		r.stale[number] = true
	}
	for number := range r.stale {
		_, again := r.announced[number]
		if !again && r.held.names(number) {
			continue
		}
		delete(r.stale, number)
		if !again {
			r.s.coder.Forget(number)
		}
	}
}

func (r *receiver) announce(number uint64, at int64) error {
	if _, ok := r.announced[number]; !ok {
		if len(r.announced) >= r.s.cfg.Limits.MaxShapes {
			return &Error{Code: BeyondLimits, At: at, Err: fmt.Errorf("more than %d shape numbers", len(r.announced))}
		}
		r.announced[number] = false
	}
	return nil
}

// refer takes note of a fingerprint, and asks for its shape if it is not there.
func (r *receiver) refer(number uint64, fp [32]byte) error {
	known, err := r.s.coder.Refer(number, fp)
	if err != nil || known {
		return err
	}
	r.ask(number)
	return nil
}

// ask has the other end send a shape in full, once for each announcement.
func (r *receiver) ask(number uint64) {
	if r.announced[number] {
		return
	}
	r.announced[number] = true
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.controlLocked(frame.Shape{Number: number, Form: frame.Unknown})
}
