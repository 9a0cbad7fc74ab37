//go:build unix

package program

import (
	"os"
	"runtime"
	"syscall"
)

func resident(s *os.ProcessState) int64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin" || runtime.GOOS == "ios": // in bytes there, else in KiB
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
