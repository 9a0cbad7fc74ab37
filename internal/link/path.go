package link

import (
	"math/rand/v2"
	"time"
)

// datagramHeaders is the size of the IP and UDP headers of a datagram, in bytes.
const datagramHeaders = 28

// Path is one direction of a link for datagrams: it computes when a datagram arrives, if it does.
// Two paths of the same profile and direction that get the same calls return the same results. It
// waits for nothing and has no clock; the times are the caller's, and must not go backwards. Not
// safe for concurrent use.
type Path struct {
	profile Profile
	rand    *rand.Rand
	began   time.Time
	offset  time.Duration // of the outages, within their period
	free    time.Time     // time at which the line has sent all that is queued
	latest  time.Time     // time at which the last datagram that was not reordered arrives
	bad     bool          // within a burst of losses
	arrive  [2]time.Time
	count   PathStats
}

// PathStats are counters of datagrams: Sent are all, the others those that did not simply arrive.
type PathStats struct {
	Sent, Lost, TooLong, Dropped, Reordered, Duplicated int64
	// Wire is what the line sent, in bytes with headers.
	Wire int64
}

// NewPath creates a path. way is the direction, 0 or 1: each has random numbers of its own. Errors:
// BadProfile.
func NewPath(p Profile, way int) (*Path, error) {
	p, err := p.withDefaults()
	if err != nil {
		return nil, err
	}
	if p.MTU == 0 {
		p.MTU = mss + headers
	}
	r := rand.New(rand.NewPCG(p.Seed, uint64(way)))
	path := &Path{profile: p, rand: r}
	if p.Outage > 0 {
		path.offset = time.Duration(r.Int64N(int64(p.OutageEvery)))
	}
	return path, nil
}

// Stats returns the counters up to now.
func (p *Path) Stats() PathStats { return p.count }

// Send puts a datagram with that many bytes of payload on the path, and returns the times at which
// it arrives: none, one, or two. They are valid until the next Send.
//
// In this order: a datagram that is too long for the path never enters it; one that finds the queue
// full is dropped; the line takes its time; an outage or chance lose it; it takes half a round
// trip, and jitter, which never changes the order; one that is reordered takes up to half a round
// trip more (at least 10 ms), and others may overtake it; one that is duplicated arrives again
// likewise.
func (p *Path) Send(now time.Time, octets int) []time.Time {
	p.count.Sent++
	if p.began.IsZero() {
		p.began = now
	}
	wire := int64(octets + datagramHeaders)
	if wire > int64(p.profile.MTU) {
		p.count.TooLong++
		return nil
	}
	if p.free.Before(now) {
		p.free = now
	}
	took := p.profile.sending(wire)
	if p.free.Sub(now)+took > p.profile.sending(int64(p.profile.Queue)) {
		p.count.Dropped++
		return nil
	}
	p.free = p.free.Add(took)
	p.count.Wire += wire
	if lost := p.loses(); lost || p.out(p.free) {
		p.count.Lost++
		return nil
	}
	at := p.free.Add(p.profile.RTT / 2)
	if p.profile.Jitter > 0 {
		at = at.Add(time.Duration(p.rand.Int64N(int64(p.profile.Jitter) + 1)))
	}
	if p.chance(p.profile.Reorder) {
		p.count.Reordered++
		at = at.Add(p.detour())
	} else {
		if at.Before(p.latest) {
			at = p.latest
		}
		p.latest = at
	}
	p.arrive[0] = at
	if !p.chance(p.profile.Duplicate) {
		return p.arrive[:1]
	}
	p.count.Duplicated++
	p.arrive[1] = at.Add(p.detour())
	return p.arrive[:2]
}

func (p *Path) chance(share float64) bool { return share > 0 && p.rand.Float64() < share }

// detour is the additional delay of a reordered datagram.
func (p *Path) detour() time.Duration {
	return time.Duration(p.rand.Int64N(int64(max(p.profile.RTT/2, 10*time.Millisecond)))) + 1
}

// loses decides by chance. With bursts it is Gilbert's chain of two states: in one nothing is lost,
// in the other everything, for Burst datagrams in the mean, so that the share is the profile's.
func (p *Path) loses() bool {
	share, burst := p.profile.Loss, p.profile.Burst
	if burst <= 1 || share == 0 || share == 1 {
		return p.chance(share)
	}
	if p.bad {
		p.bad = p.rand.Float64() >= 1/burst
	} else {
		p.bad = p.rand.Float64() < share/(1-share)/burst
	}
	return p.bad
}

// out reports whether the line is in an outage at that time.
func (p *Path) out(at time.Time) bool {
	return p.profile.Outage > 0 && (at.Sub(p.began)+p.offset)%p.profile.OutageEvery < p.profile.Outage
}
