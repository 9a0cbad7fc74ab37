package main

import (
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether a stream of the command is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isFile reports whether nobody sees a stream of the command on a terminal: it is a file, or none
// of the system's.
func isFile(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// columns is the width of a terminal; 0: it is none, or does not report it.
func columns(stream any) int {
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
