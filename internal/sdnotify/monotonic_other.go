//go:build !linux

package sdnotify

// monotonic is of use to systemd, which is on Linux only.
func monotonic() (usec int64, ok bool) { return 0, false }
