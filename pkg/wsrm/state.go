package wsrm

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/window"
)

const (
	// stateVersion is the first byte of a stored state.
	stateVersion = 1
	// stateOrdered is a bit of the third; the others are of the receiver.
	stateOrdered = 1
	// stateLimit is the greatest number of a sequence.
	stateLimit = 1<<63 - 1
	// greatestReason and greatestPhase are what a state has no more than.
	greatestReason = uint64(Unrecognized)
	greatestPhase  = uint64(phaseEnded)
)

var errState = errors.New("fields that contradict each other, or the configuration")

// appendState appends what must outlive a crash, as one value: what was accepted and is not done,
// and the filter of duplicates. Times are not in it.
func (m *machine) appendState(dst []byte) []byte {
	m.changed, m.in.Changed = false, false
	s := &m.out
	flags := m.in.Flags()
	if m.cfg.Ordered {
		flags |= stateOrdered
	}
	dst = append(dst, stateVersion, byte(m.cfg.Assurance), flags)
	dst = binary.AppendUvarint(dst, stateLimit)
	dst = s.AppendNumbers(dst)
	for _, v := range [...]uint64{uint64(s.lasting()), uint64(s.reason), s.Instance} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = m.in.AppendNumbers(dst)
	if s.phase < phaseTerminating { // then nothing is sent any more
		dst = s.AppendUnits(dst)
	}
	return m.in.AppendUnits(dst)
}

// restoreMachine makes a machine that goes on from a stored state, of which it keeps a copy. What
// was under way is sent again, but for at-most-once, where it is reported as [Lost] in the first
// step; messages begun and not committed are reported as [Unknown]. Errors: BadConfig, BadState.
func restoreMachine(cfg Config, state []byte) (*machine, error) {
	m, err := newMachine(cfg)
	if err != nil {
		return nil, err
	}
	r := bin.NewCursor(slices.Clone(state), 0)
	flags := m.restoreHead(&r)
	m.restoreNumbers(&r)
	m.restoreUnits(&r, flags)
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(errState)
	}
	if err := r.Err(); err != nil {
		return nil, &Error{Code: BadState, Err: err}
	}
	return m, nil
}

func (m *machine) restoreHead(r *bin.Cursor) (flags byte) {
	version, assurance := r.U8(), Assurance(r.U8())
	flags = r.U8()
	limit := r.Uvarint()
	same := version == stateVersion && assurance == m.cfg.Assurance && limit == stateLimit &&
		(flags&stateOrdered != 0) == m.cfg.Ordered && flags&^(stateOrdered|window.StateFlags) == 0
	if r.Err() == nil && !same {
		r.Fail(errState)
	}
	return flags
}

func (m *machine) restoreNumbers(r *bin.Cursor) {
	s := &m.out
	s.RestoreNumbers(r)
	phases, reason := r.Uvarint(), r.Uvarint()
	s.Instance = r.Uvarint()
	if phases > greatestPhase || reason > greatestReason {
		r.Fail(errState)
	}
	s.phase, s.reason = phase(phases), Reason(reason)
	s.spoke = true
	m.in.RestoreNumbers(r)
}

func (m *machine) restoreUnits(r *bin.Cursor, flags byte) {
	if r.Err() != nil {
		return
	}
	s := &m.out
	if s.phase < phaseTerminating {
		s.RestoreUnits(r, m.cfg.Hold)
	}
	if r.Err() != nil {
		return
	}
	if m.cfg.Assurance == AtMostOnce && s.Last > s.Done && s.phase < phaseTerminating {
		s.forgotten = window.Range{First: s.Done + 1, Last: s.Last}
		s.Advance(s.Last)
	}
	if s.phase == phaseClosing && s.Done == s.Last || s.phase == phaseTerminating {
		m.say()
	}
	m.unknown = m.in.RestoreUnits(r, flags)
}
