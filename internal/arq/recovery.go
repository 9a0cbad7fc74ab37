package arq

import "time"

// recovery measures the path, and finds out what was lost.
type recovery struct {
	sentAt  [sentMemory]time.Duration
	spokeAt time.Duration

	srtt, rttvar, rto time.Duration
	latest            time.Duration
	backoff           uint // time-outs in a row
	rtoAt, lossAt     time.Duration
	probe             bool          // a time-out lets one datagram pass the window
	tailAt            time.Duration // when the last datagram is sent again, before the timer fires
	// tail is the number of the last datagram when that was done, until there is news of a later
	// one.
	tail uint64

	cwnd, ssthresh int
	recovering     uint64 // losses of datagrams up to this one belong to one loss event
	paceAt         time.Duration

	undo undo
}

// undo is what a time-out changed, until it is known whether it was right.
type undo struct {
	packet         uint64 // the last datagram before it; 0: nothing to undo
	number         uint64 // a unit it took for lost
	cwnd, ssthresh int
}

func (r *recovery) init(cfg *Config) {
	r.rtoAt, r.lossAt, r.tailAt = never, never, never
	r.forget(cfg)
	if cfg.RTT > 0 {
		r.measured(cfg.RTT)
	}
}

// forget what is known of the path.
func (r *recovery) forget(cfg *Config) {
	r.srtt, r.rttvar, r.rto, r.latest, r.backoff = 0, 0, max(initialRTO, minRTO), 0, 0
	size := cfg.Datagram + packetOverhead
	// RFC 5681 section 3.1.
	r.cwnd = min(4*size, max(2*size, 4380))
	r.ssthresh = 1 << 30
	r.paceAt, r.undo = 0, undo{}
}

// moved begins anew on another path.
func (e *Endpoint) moved() {
	s := &e.out
	if s.phase == phaseEnded {
		return
	}
	s.forget(s.cfg)
	s.asked = true
	e.say()
	s.restartTimer(e.now)
}

// measured takes in a round trip, by RFC 6298 rules 2.2 to 2.5.
func (r *recovery) measured(rtt time.Duration) {
	r.latest = rtt
	if r.srtt == 0 {
		r.srtt, r.rttvar = max(rtt, 1), rtt/2
	} else {
		r.rttvar += ((r.srtt - rtt).Abs() - r.rttvar) / 4
		r.srtt += (rtt - r.srtt) / 8
	}
	r.rto = min(max(r.srtt+max(granularity, 4*r.rttvar), minRTO), maxRTO)
}

// armTimer starts the timer if it does not run (RFC 6298 rule 5.1).
func (s *sendHalf) armTimer(now time.Duration) {
	if s.rtoAt == never {
		s.restartTimer(now)
	}
}

// restartTimer starts it anew, or stops it when nothing is under way (rules 5.2 and 5.3).
func (s *sendHalf) restartTimer(now time.Duration) {
	s.rtoAt = never
	told := s.phase == phaseTerminating || s.phase == phaseClosing && s.Done == s.Last
	if s.oldest != 0 || s.Done < s.Sent || s.asked || told {
		s.rtoAt = now + s.interval()
	}
}

// armTail has the last datagram sent again when nothing is heard for two round trips: that one, or
// what says that it arrived, may be lost, and no later one is there to tell (RFC 8985 section 7).
// Once, until there is news; and not where the timer fires as soon.
func (s *sendHalf) armTail(now time.Duration) {
	s.tailAt = never
	if s.oldest == 0 || s.backoff > 0 || s.tail != 0 || s.srtt == 0 {
		return
	}
	if at := now + max(2*s.srtt, s.srtt+4*s.rttvar) + ackDelay; at < s.rtoAt {
		s.tailAt = at
	}
}

// probeTail sends it.
func (e *Endpoint) probeTail() {
	s := &e.out
	s.tailAt = never
	if s.phase == phaseEnded || s.newest == 0 {
		return
	}
	e.stats.Probes++
	s.tail = s.Packet
	for packet := s.PacketOf(s.newest); s.newest != 0 && s.PacketOf(s.newest) == packet; {
		s.Lose(s.newest)
	}
	s.paceAt = e.now
	s.probe = true
	s.rtoAt = e.now + s.interval() // what is sent now gets its time
}

// probed: there is news. What came of it is that datagrams were lost, which calls for a smaller
// window, if none is known as lost otherwise (RFC 8985 section 7.4).
func (s *sendHalf) probed(echo uint64, flight int) {
	if s.tail == 0 || echo <= s.tail {
		return
	}
	if s.tail > s.recovering {
		s.congested(flight)
	}
	s.tail = 0
}

// interval is the timer, backed off (rule 5.5), and then up to a quarter longer: a timer in step
// with an outage that comes and goes would never hit the time between.
func (s *sendHalf) interval() time.Duration {
	if s.backoff == 0 {
		return s.rto
	}
	// The datagram's number, stirred: an engine without chance of its own can be run again.
	stir := (s.Packet * 0x9e3779b97f4a7c15) >> 56
	long := min(s.rto<<min(s.backoff, 16), maxRTO)
	return long + long/1024*time.Duration(stir)
}

// timeout: the timer fired.
func (e *Endpoint) timeout() {
	s := &e.out
	s.rtoAt = never
	if s.phase == phaseEnded {
		return
	}
	e.stats.Timeouts++
	s.tail, s.tailAt = 0, never
	if s.oldest != 0 {
		if s.backoff == 0 {
			s.undo = undo{packet: s.Packet, number: s.oldest, cwnd: s.cwnd, ssthresh: s.ssthresh}
			s.ssthresh = max(s.bytes/2, 2*s.segment())
		}
		s.cwnd = s.segment()
		s.recovering = s.Packet
		// One datagram is sent again; the answer to it covers all others.
		for packet := s.PacketOf(s.oldest); s.oldest != 0 && s.PacketOf(s.oldest) == packet; {
			s.Lose(s.oldest)
		}
		s.paceAt = e.now
		s.probe = s.Pending()
	} else if s.Lost() {
		s.probe = true
	} else {
		// Nothing is under way, and yet not all is done: what told so may have been lost.
		s.control = true
		s.goodbyes++
	}
	if s.phase == phaseTerminating && s.goodbyes > maxEndings {
		e.end(Complete)
		return
	}
	s.backoff++
	s.restartTimer(e.now)
}

// detectLoss calls units lost that others sent later have overtaken.
func (e *Endpoint) detectLoss() {
	s := &e.out
	s.lossAt = never
	patience := max(s.srtt, s.latest)
	patience = max(patience+patience/8, granularity)
	event, flight := false, s.bytes
	for s.oldest != 0 {
		packet, at := s.PacketOf(s.oldest), s.flying(s.oldest).at
		if packet >= s.Echo {
			break
		}
		if s.Echo-packet < reorderPackets && e.now < at+patience {
			s.lossAt = at + patience
			break
		}
		event = event || packet > s.recovering
		s.Lose(s.oldest)
	}
	if event {
		s.congested(flight)
	}
	if s.oldest == 0 {
		s.restartTimer(e.now)
	}
}
