package machine

import "time"

// Task is something to be done.
type Task struct {
	Do Deed
	// Session is the one that Forget and Extend are about.
	Session ID
	// Revision, with Forget, is that of the record; 0: whatever it is.
	Revision uint64
	// Lifetime, with Extend, is how long the record lasts from now on.
	Lifetime time.Duration
	// At, with Wake, is when.
	At time.Time
}

// Deed is what a task does.
type Deed uint8

// The deeds.
const (
	// TurnAway refuses the session: there is no slot for it.
	TurnAway Deed = iota + 1
	// Forget deletes the record of a session.
	Forget
	// Extend has the record of a session last for longer.
	Extend
	// Wake has [Woken] follow at a time, and at no other.
	Wake
)
