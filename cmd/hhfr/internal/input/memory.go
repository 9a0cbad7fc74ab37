package input

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// seldom is how much new memory is worth a collection, in percent of what is in use.
const seldom = 300

// Frugal makes the garbage collector run before memory exceeds so many bytes, and seldom before:
// what reads a long file holds little, and would collect after each few MB. What the user has set
// (GOMEMLIMIT, GOGC) takes precedence.
func Frugal(enough int64) (undo func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 {
		debug.SetMemoryLimit(enough)
	}
	if os.Getenv("GOGC") != "" {
		return func() { debug.SetMemoryLimit(before) }
	}
	percent := debug.SetGCPercent(seldom)
	return func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
	}
}

// Sendable checks files before anything is sent, as far as possible.
func Sendable(files []string) error {
	for _, name := range files {
		if name == "-" {
			continue
		}
		if err := readable(name); err != nil {
			return err
		}
	}
	return Once(files)
}

func readable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return exit.Usagef("name its files: "+filepath.Join(name, "*.xml"), "%s is a folder", name)
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}
