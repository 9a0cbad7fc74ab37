package machine

import "time"

// Task is something to be done.
type Task struct {
	Do Deed
	// Careful, with Replace: the stream is not used before its peer is there, since calls
	// might have an unknown fate again.
	Careful bool
	// After, with Try, is how long to wait before.
	After time.Duration
	// Early, with Try: not all nodes had two attempts yet.
	Early bool
	// Remember, with Settle and Fall: later sessions speak plain SOAP for a while, too.
	Remember bool
}

// Deed is what a task does.
type Deed uint8

// The deeds.
const (
	// Ask: the call asks for a stream, and [Answered] follows.
	Ask Deed = iota + 1
	// Join opens the stream that the answer named. [Connected] or [Refused] follows.
	Join
	// Use sends messages over the stream from now on. [Lost] follows.
	Use
	// Drop closes the stream, which nobody wants any more.
	Drop
	// Undo takes back what was agreed for the stream, which its peer never accepted.
	Undo
	// Leave lets the stream go: the next call asks for another one.
	Leave
	// Replace begins to look for another stream. [Connected] or [Missed] follows.
	Replace
	// Try makes another attempt, at the next node. [Connected] or [Missed] follows.
	Try
	// Explain records why there is no stream yet.
	Explain
	// Settle reports that plain SOAP is spoken, since there is no stream to be had, and why.
	Settle
	// Fall reports that plain SOAP is spoken from now on, after streams, and why.
	Fall
	// EndSequence ends the sequence: nothing of it can be sent any more.
	EndSequence
)
