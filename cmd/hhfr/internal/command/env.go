// Package command has what every command is given, and how it reports on stderr.
package command

import (
	"io"
	"log/slog"

	"github.com/hhfr/hhfr/internal/resolve"
)

// Env is what a command may use beside the network and the files that it is given.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	System   resolve.System // the zero value: nothing is known of it
	// SetLog, if given, is called with the logger for the standard library.
	SetLog func(*slog.Logger)
}
