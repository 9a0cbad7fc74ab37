package wsrm

import "time"

// outState is where a unit of the source is.
type outState uint8

const (
	outQueued  outState = iota // accepted, never sent
	outFlying                  // sent, nothing known
	outLost                    // to be sent again
	outArrived                 // at the other end, which may lose it again
	outGone                    // at-most-once: arrived or given up
)

// outUnit is one unit that is not done.
type outUnit struct {
	payload     []byte
	packet      uint64 // the datagram that carried it last
	at          time.Duration
	charge      int    // what it adds to the flight, in octets
	older       uint64 // position of the unit that was sent before it and is flying, 0: none
	newer       uint64
	state       outState
	first, last bool
}

// phase is that of the source's sequence.
type phase uint8

const (
	phaseOpen phase = iota
	phaseClosing
	phaseTerminating
	phaseEnded
)

// source is the sending half (RMS).
type source struct {
	cfg   *Config
	units []outUnit // ring by position; it grows up to the window

	done uint64 // the other end is done with all up to here
	last uint64 // accepted
	sent uint64 // handed out at least once

	held    int    // octets of payload of units above done
	waiting int    // octets of payload of units queued or lost
	lost    int    // units lost
	arrived uint64 // units that arrived
	lostAt  uint64

	oldest, newest uint64 // ends of the list of flying units, in the order of their datagrams
	flight         int    // octets under way, with headers

	phase    phase
	reason   Reason
	goodbyes int
	control  bool   // a datagram without units is due
	asked    bool   // for a sign of life
	spoke    bool   // a datagram was sent
	instance uint64 // of the other end

	forgotten Range // at-most-once: what a crash left of unknown fate, to be reported in the next step

	recovery
}

func (s *source) init(cfg *Config) {
	s.cfg = cfg
	s.units = make([]outUnit, minRing)
	s.packet = max(cfg.Instance, 1) - 1
	s.packet *= restoreSkip // no number of a life before
	s.recovery.init(cfg)
}

func (s *source) unit(position uint64) *outUnit { return &s.units[position&uint64(len(s.units)-1)] }

// send accepts a message.
func (e *Engine) send(message []byte) error {
	s := &e.out
	size := e.cfg.maxUnit()
	n := max(1, (len(message)+size-1)/size)
	switch {
	case s.phase != phaseOpen:
		return fault(Closed)
	case n > e.cfg.Window || len(message) > e.cfg.Hold:
		return fault(TooLarge)
	case s.last+uint64(n) > maxPosition-uint64(e.cfg.Window):
		return fault(Rollover)
	case s.last-s.done+uint64(n) > uint64(e.cfg.Window) || s.held+len(message) > e.cfg.Hold:
		return fault(Full)
	}
	s.held += len(message)
	s.waiting += len(message)
	s.units = ringFor(s.units, s.done, s.last+uint64(n))
	for i := range n {
		part := message[min(i*size, len(message)):min((i+1)*size, len(message))]
		s.last++
		*s.unit(s.last) = outUnit{payload: part, first: i == 0, last: i == n-1}
	}
	e.changed = true
	return nil
}

// wakeAt is when the source wants to act.
func (s *source) wakeAt(e *Engine) time.Duration {
	at := min(s.rtoAt, s.lossAt, s.tailAt)
	switch {
	case s.phase == phaseEnded:
		return never
	case s.pending() && s.admitted():
		at = min(at, max(s.paceAt, e.now))
	case s.last > s.done || s.phase != phaseOpen || s.asked || s.cfg.Carried:
	default:
		at = min(at, s.keepAt(e))
	}
	return at
}

// keepAt is when an idle source asks for a sign of life.
func (s *source) keepAt(e *Engine) time.Duration {
	return max(e.heard, s.spokeAt) + e.cfg.Inactivity/3
}

func (s *source) pending() bool { return s.lost > 0 || s.sent < s.last }

// admitted tells whether the congestion window takes the next datagram. It waits for room for a full one, if there is that much to send.
func (s *source) admitted() bool {
	next := min(s.cfg.Datagram, s.waiting+unitReserve) + packetOverhead
	return s.probe || s.flight == 0 || s.flight+next <= s.cwnd
}

// link puts a unit at the new end of the flying ones.
func (s *source) link(position uint64, u *outUnit) {
	u.older, u.newer = s.newest, 0
	if s.newest != 0 {
		s.unit(s.newest).newer = position
	} else {
		s.oldest = position
	}
	s.newest = position
}

// land takes a unit out of the flying ones.
func (s *source) land(u *outUnit) {
	if u.older != 0 {
		s.unit(u.older).newer = u.newer
	} else {
		s.oldest = u.newer
	}
	if u.newer != 0 {
		s.unit(u.newer).older = u.older
	} else {
		s.newest = u.older
	}
	s.flight -= u.charge
	u.charge = 0
}

// advance moves done up to a position all below which is over, and forgets those units.
func (s *source) advance(to uint64) (moved bool) {
	for s.done < to {
		s.done++
		u := s.unit(s.done)
		switch u.state {
		case outFlying:
			s.land(u)
		case outLost:
			s.lost--
			s.waiting -= len(u.payload)
		case outQueued:
			s.waiting -= len(u.payload)
		case outArrived:
			s.arrived--
		case outGone:
		}
		s.held -= len(u.payload)
		*u = outUnit{}
		moved = true
	}
	s.sent = max(s.sent, s.done)
	return moved
}
