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

// KeepAtMost has a listener keep less than it would, as if something else took the rest. kept tells how many octets its sessions have that are not read.
func KeepAtMost(l net.Listener, octets int64) (kept func() int64) {
	all := &l.(*listener).kept.octets
	all.Add(maxKept - octets)
	return func() int64 { return all.Load() - (maxKept - octets) }
}
