//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsForeground reports whether a stream is the terminal of this process, which has it now: one in
// the background writes into what its user types.
func IsForeground(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
