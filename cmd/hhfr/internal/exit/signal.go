package exit

import (
	"context"
	"errors"
	"os"
)

// Signalled is why an interrupted command ends.
type Signalled struct{ os.Signal }

func (s Signalled) Error() string { return s.String() + " signal received" }

// Unwrap makes it a canceled context.
func (Signalled) Unwrap() error { return context.Canceled }

// DoneCode is the exit code of a command without an error. Servers, and other commands that run
// until a signal, shut down in order on either signal: SIGTERM is addressed to them, Ctrl-C to the
// shell.
func DoneCode(ctx context.Context) int {
	var s Signalled
	if errors.As(context.Cause(ctx), &s) && s.Signal == os.Interrupt {
		return Interrupted
	}
	return Done
}
