package capture

import "github.com/hhfr/hhfr/internal/frame"

// found is what a first pass found out about a direction.
type found struct {
	verdicts []verdict
	at       int // index of the next verdict
	refusals map[frame.Key]string
	declined bool // all messages
	met      bool // it began
}

// verdict is the state of the messages up to a number, starting after that of the verdict before.
type verdict struct {
	to    uint64
	state State
}

// verdictOf is the state of a message that is not before the one of the last call; 0: unknown.
func (f *found) verdictOf(index uint64) State {
	for f.at < len(f.verdicts) && f.verdicts[f.at].to < index {
		f.at++
	}
	if f.at < len(f.verdicts) {
		return f.verdicts[f.at].state
	}
	return 0
}

// settle gives a whole message the state from a check.
func (d *Decoded) settle(s State) {
	switch {
	case s == Withdrawn:
		d.State, d.Why = s, "its check is wrong"
	case d.State == Unverified:
		d.State = s
	}
}

// refusal returns why the peer did not take a message; empty: no refusal is known.
func (f *found) refusal(k frame.Key) string {
	if f.declined {
		return "refused: the session was not accepted"
	}
	return f.refusals[k]
}
