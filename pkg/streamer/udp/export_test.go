package udp

import "net"

// MaxSessions, MaxTombs and Share are limits of a listener.
const (
	MaxSessions = maxSessions
	MaxTombs    = maxTombs
	Share       = share
)

// KeepAtMost has a listener keep less than it would.
func KeepAtMost(l net.Listener, octets int64) { l.(*listener).kept.most = octets }

// Kept tells how many octets the sessions of a listener have that are not read.
func Kept(l net.Listener) int64 { return l.(*listener).kept.octets.Load() }
