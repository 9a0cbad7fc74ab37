package wsrm

import (
	"time"

	"github.com/hhfr/hhfr/internal/window"
)

// Machine is an engine without its store.
type Machine = machine

var (
	NewMachine     = newMachine
	RestoreMachine = restoreMachine
)

func (m *machine) Step(now time.Time, ev Event) ([]Action, error)       { return m.step(now, ev) }
func (m *machine) Begin(now time.Time, number uint64) ([]Action, error) { return m.begin(now, number) }
func (m *machine) AppendState(dst []byte) []byte                        { return m.appendState(dst) }
func (m *machine) Changed() bool                                        { return m.hasChanged() }

// Complete reports whether the peer has closed its sequence, and all its messages are done.
func (m *machine) Complete() bool { return m.in.Complete() }

// Forgotten makes a new machine one whose lives before left no state.
func (m *machine) Forgotten(lives uint64) *Machine {
	m.in.Instance = lives
	m.out.Packet = lives * window.RestoreSkip
	return m
}
