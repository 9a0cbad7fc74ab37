package wire

import "time"

// LongPause is how long a body may be silent before what was written of it goes out, whatever the
// link does, and a number that is cut goes as text.
const LongPause = 200 * time.Millisecond

// Pause is the same if the link is idle, for a body of a known length, or -1. One whose length is
// known and at most 1 MiB waits longer: it is no series of events, and pieces of it cost more than
// all of it.
func Pause(length int64) time.Duration {
	if length >= 0 && length <= 1<<20 {
		return LongPause
	}
	return 20 * time.Millisecond
}
