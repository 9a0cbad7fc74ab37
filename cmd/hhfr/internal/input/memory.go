package input

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// seldom is how much new memory is worth a collection, in percent of what is in use.
const seldom = 300

// Frugal makes the garbage collector run before memory exceeds so many bytes, and seldom before:
// what reads a long file holds little, and would collect after each few MB. If what is in use comes
// near the limit, that grows: the collector would do nothing else. What the user has set
// (GOMEMLIMIT, GOGC) takes precedence.
func Frugal(enough int64) (undo func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 {
		debug.SetMemoryLimit(enough)
		var over atomic.Bool
		defer func() {
			restore := undo
			undo = func() {
				over.Store(true)
				restore()
			}
		}()
		growLimit(enough, &over)
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

// growLimit raises the limit of memory after each collection that left more than 7/8 of it in use,
// to half more than that, until it is over.
func growLimit(limit int64, over *atomic.Bool) {
	runtime.AddCleanup(new([64]byte), func(limit int64) { // when the next collection is done
		if over.Load() {
			return
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if used := int64(m.Sys - m.HeapSys + m.HeapAlloc); used > limit/8*7 {
			limit = used / 2 * 3
			debug.SetMemoryLimit(limit)
		}
		growLimit(limit, over)
	}, limit)
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
