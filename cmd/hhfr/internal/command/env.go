// Package command has what every command is given, and how it reports on stderr.
package command

import (
	"io"
	"log/slog"
	"os"

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

// ProcessEnv is what the process has, on a system with this PREFIX.
func ProcessEnv(prefix string) Env {
	return Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, System: resolve.Local(prefix), SetLog: slog.SetDefault}
}
