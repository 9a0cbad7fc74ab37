//go:build unix

package service

import "syscall"

// descriptorLimit is how many file descriptors this process may have; false if nobody says so.
func descriptorLimit() (limit uint64, limited bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true
}
