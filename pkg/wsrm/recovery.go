package wsrm

import "time"

// recovery measures the path, and finds out what was lost.
type recovery struct {
	packet  uint64 // number of the last datagram
	echo    uint64 // greatest one that the other end has seen
	sentAt  [sentMemory]time.Duration
	spokeAt time.Duration

	srtt, rttvar, rto time.Duration
	latest            time.Duration
	backoff           uint // time-outs in a row
	rtoAt, lossAt     time.Duration
	probe             bool          // a time-out lets one datagram pass the window
	tailAt            time.Duration // when the last datagram is sent again, before the timer fires
	tail              uint64        // the number of the last datagram when that was done, until there is news of one behind it

	cwnd, ssthresh int
	recovering     uint64 // losses of datagrams up to this one belong to one loss event
	paceAt         time.Duration

	undo undo
}

// undo is what a time-out changed, until it is known whether it was right.
type undo struct {
	packet         uint64 // the last datagram before it; 0: nothing to undo
	position       uint64 // a unit it took for lost
	cwnd, ssthresh int
}

func (r *recovery) init(cfg *Config) {
	r.rtoAt, r.lossAt, r.tailAt = never, never, never
	r.forget(cfg)
	if cfg.RTT > 0 {
		r.measured(cfg, cfg.RTT)
	}
}

// forget what is known of the path.
func (r *recovery) forget(cfg *Config) {
	r.srtt, r.rttvar, r.rto, r.latest, r.backoff = 0, 0, max(initialRTO, cfg.MinRTO), 0, 0
	size := cfg.Datagram + packetOverhead
	// RFC 5681 section 3.1.
	r.cwnd = min(4*size, max(2*size, 4380))
	r.ssthresh = 1 << 30
	r.paceAt, r.undo = 0, undo{}
}

// moved begins anew on another path.
func (e *Engine) moved() {
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
func (r *recovery) measured(cfg *Config, rtt time.Duration) {
	r.latest = rtt
	if r.srtt == 0 {
		r.srtt, r.rttvar = max(rtt, 1), rtt/2
	} else {
		r.rttvar += ((r.srtt - rtt).Abs() - r.rttvar) / 4
		r.srtt += (rtt - r.srtt) / 8
	}
	r.rto = min(max(r.srtt+max(granularity, 4*r.rttvar), cfg.MinRTO), cfg.MaxRTO)
}

// armTimer starts the timer if it does not run (RFC 6298 rule 5.1).
func (s *source) armTimer(now time.Duration) {
	if s.rtoAt == never {
		s.restartTimer(now)
	}
}

// restartTimer starts it anew, or stops it when nothing is under way (rules 5.2 and 5.3).
func (s *source) restartTimer(now time.Duration) {
	s.rtoAt = never
	if s.cfg.Carried {
		return
	}
	if s.oldest != 0 || s.done < s.sent || s.asked || s.phase == phaseTerminating || s.phase == phaseClosing && s.done == s.last {
		s.rtoAt = now + s.interval()
	}
}

// armTail has the last datagram sent again when nothing is heard for two round trips: that one, or the word that it arrived, may be lost, and no other is behind it to tell (RFC 8985 section 7). Once, until
// there is news; and not where the timer fires as soon.
func (s *source) armTail(now time.Duration) {
	s.tailAt = never
	if s.oldest == 0 || s.backoff > 0 || s.tail != 0 || s.srtt == 0 || s.cfg.lossy() {
		return
	}
	if at := now + max(2*s.srtt, s.srtt+4*s.rttvar) + s.cfg.AckDelay; at < s.rtoAt {
		s.tailAt = at
	}
}

// probeTail sends it.
func (e *Engine) probeTail() {
	s := &e.out
	s.tailAt = never
	if s.phase == phaseEnded || s.newest == 0 {
		return
	}
	e.stats.Probes++
	s.tail = s.packet
	for number := s.unit(s.newest).packet; s.newest != 0 && s.unit(s.newest).packet == number; {
		e.lose(s.newest)
	}
	s.paceAt = e.now
	s.probe = true
	s.rtoAt = e.now + s.interval() // what is sent now gets its time
}

// probed: there is news. What came of it is that datagrams were lost, which calls for a smaller window, if none is known as lost otherwise (RFC 8985 section 7.4).
func (s *source) probed(echo uint64, flight int) {
	if s.tail == 0 || echo <= s.tail {
		return
	}
	if s.tail > s.recovering {
		s.congested(flight)
	}
	s.tail = 0
}

// interval is the timer, backed off (rule 5.5), and then up to a quarter longer: a timer in step with an outage that comes and goes would never hit the time between.
func (s *source) interval() time.Duration {
	if s.backoff == 0 {
		return s.rto
	}
	// The datagram's number, stirred: an engine without chance of its own can be run again.
	stir := (s.packet * 0x9e3779b97f4a7c15) >> 56
	long := min(s.rto<<min(s.backoff, 16), s.cfg.MaxRTO)
	return long + long/1024*time.Duration(stir)
}

// timeout: the timer fired.
func (e *Engine) timeout() {
	s := &e.out
	s.rtoAt = never
	if s.phase == phaseEnded {
		return
	}
	e.stats.Timeouts++
	s.tail, s.tailAt = 0, never
	if s.oldest != 0 {
		if s.backoff == 0 {
			s.undo = undo{packet: s.packet, position: s.oldest, cwnd: s.cwnd, ssthresh: s.ssthresh}
			s.ssthresh = max(s.flight/2, 2*s.segment())
		}
		s.cwnd = s.segment()
		s.recovering = s.packet
		// One datagram is sent again; what it makes the other end say tells about all others.
		for number := s.unit(s.oldest).packet; s.oldest != 0 && s.unit(s.oldest).packet == number; {
			e.lose(s.oldest)
		}
		s.paceAt = e.now
		s.probe = s.pending()
		e.giveUp()
	} else if s.lost > 0 {
		s.probe = true
	} else {
		// Nothing is under way, and yet not all is done: what told so may have been lost.
		s.control = true
		s.goodbyes++
	}
	if s.phase == phaseTerminating && s.goodbyes > farewells {
		e.end(s.reason)
		return
	}
	s.backoff++
	s.restartTimer(e.now)
}

// lose marks a flying unit as lost; at-most-once gives it up.
func (e *Engine) lose(position uint64) {
	s := &e.out
	u := s.unit(position)
	s.land(u)
	if e.cfg.lossy() {
		u.state = outGone
		e.act(Action{Kind: Lost, Number: position, Count: 1})
		return
	}
	e.again(position, u)
}

// detectLoss calls units lost that others sent later have overtaken.
func (e *Engine) detectLoss() {
	s := &e.out
	s.lossAt = never
	patience := max(s.srtt, s.latest)
	patience = max(patience+patience/8, granularity)
	event, flight := false, s.flight
	for s.oldest != 0 {
		u := s.unit(s.oldest)
		if u.packet >= s.echo {
			break
		}
		if s.echo-u.packet < reorderPackets && e.now < u.at+patience {
			s.lossAt = u.at + patience
			break
		}
		event = event || u.packet > s.recovering
		e.lose(s.oldest)
	}
	if event {
		s.congested(flight)
	}
	e.giveUp()
	if s.oldest == 0 {
		s.restartTimer(e.now)
	}
}

// giveUp is done with units that at-most-once lost.
func (e *Engine) giveUp() {
	s := &e.out
	if !e.cfg.lossy() {
		return
	}
	// Whole messages: a part that arrived is of use as long as the others may.
	to := s.done
	for position := to + 1; position <= s.sent && s.unit(position).state >= outArrived; position++ {
		if s.unit(position).last {
			to = position
		}
	}
	e.settle(to)
}

// settle is done with all up to a position, and says so.
func (e *Engine) settle(to uint64) {
	if e.out.advance(to) {
		e.act(Action{Kind: Acknowledged, Number: to})
	}
}
