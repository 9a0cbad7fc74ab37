package link

import "time"

// Line is one direction of a link for packets of connections: it computes when a packet arrives. It
// waits for nothing and has no clock; the times are the caller's, and must not go backwards. Not
// safe for concurrent use.
type Line struct {
	profile Profile
	free    time.Time // time at which the line has sent all that is queued
	count   Direction
}

// NewLine creates a line that nothing uses yet. Errors: those of [Relay].
func NewLine(p Profile) (*Line, error) {
	p, err := p.forConnections()
	return &Line{profile: p}, err
}

// PacketsOf is how many packets so many bytes of a connection fill that leave together.
func PacketsOf(octets int64) int64 { return (octets + mss - 1) / mss }

// FirstPacket is how many of such bytes the first packet has.
func FirstPacket(octets int64) int64 { return min(octets, mss) }

// Room is the time until a packet of that many bytes, without headers, fits into the queue; the
// packet that is being sent counts.
func (l *Line) Room(now time.Time, content int64) time.Duration {
	backlog := max(l.free.Sub(now), 0)
	return backlog - max(l.profile.sending(int64(l.profile.Queue)-content-headers), 0)
}

// Send queues a packet with that many bytes of content, and returns when it arrives.
func (l *Line) Send(now time.Time, content int64) time.Time {
	if l.free.Before(now) {
		l.free = now
	}
	wire := content + headers
	l.count.Octets += content
	l.count.Wire += wire
	l.count.Packets++
	l.free = l.free.Add(l.profile.sending(wire))
	return l.free.Add(l.profile.RTT / 2)
}

// Stats are what the line was given to carry so far.
func (l *Line) Stats() Direction {
	d := l.count
	d.Busy = l.profile.sending(d.Wire)
	return d
}
