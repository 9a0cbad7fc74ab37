package udp

import "net"

// MaxSessions, MaxTombs and Share are limits of a listener.
const (
	MaxSessions = maxSessions
	MaxTombs    = maxTombs
	PeerTombs   = peerTombs
	MaxEarly    = maxEarly
	PeerEarly   = peerEarly
	Share       = share
)

// KeepAtMost has a listener keep less than it would, as if something else took the rest. kept is
// how many bytes its sessions have that are not read.
func KeepAtMost(l net.Listener, bytes int64) (kept func() int64) {
	all := &l.(*listener).usage.bytes
	all.Add(maxUsage - bytes)
	return func() int64 { return all.Load() - (maxUsage - bytes) }
}
