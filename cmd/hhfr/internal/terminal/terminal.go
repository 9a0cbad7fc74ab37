// Package terminal knows of a stream of the command if it is a terminal, how wide, and if it has
// colors.
package terminal

import (
	"os"

	"golang.org/x/term"
)

// Is reports whether a stream of the command is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// HasColors reports whether a stream is a terminal that shows colors, and whose user wants them
// (see no-color.org).
func HasColors(stream any) bool {
	term := os.Getenv("TERM")
	return Is(stream) && os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb"
}

// IsFile reports whether nobody sees a stream of the command on a terminal: it is a file, or none
// of the system's.
func IsFile(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Columns is the width of a terminal; 0: it is none, or does not report it.
func Columns(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
