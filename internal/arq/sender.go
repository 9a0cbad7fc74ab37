package arq

import (
	"time"

	"github.com/hhfr/hhfr/internal/window"
)

// sendPhase is that of the sender's sequence.
type sendPhase uint8

const (
	phaseOpen sendPhase = iota
	phaseClosing
	phaseTerminating
	phaseEnded
)

// sendHalf is the sending half.
type sendHalf struct {
	window.Sender
	flight
	recovery
	cfg *Config

	phase    sendPhase
	goodbyes int
	control  bool // a datagram without units is due
	asked    bool // for a sign of life
	spoke    bool // a datagram was sent
}

func (s *sendHalf) init(cfg *Config) {
	s.cfg = cfg
	s.Sender = window.NewSender(cfg.Window, cfg.Hold)
	s.flights = make([]flying, s.Size())
	s.Landed = s.land
	s.recovery.init(cfg)
}

// accept takes a message, in units that fit datagrams.
func (s *sendHalf) accept(message []byte) error {
	err := s.Accept(message, s.cfg.Datagram-unitReserve)
	if n := s.Size(); n != len(s.flights) {
		s.flights = window.Grown(s.flights, s.Done, n)
	}
	return err
}

// wakeAt is when the sender wants to act.
func (s *sendHalf) wakeAt(e *Endpoint) time.Duration {
	at := min(s.rtoAt, s.lossAt, s.tailAt)
	switch {
	case s.phase == phaseEnded:
		return never
	case s.Pending() && s.admitted():
		at = min(at, max(s.paceAt, e.now))
	case s.Last > s.Done || s.phase != phaseOpen || s.asked:
	default:
		at = min(at, s.keepAt(e))
	}
	return at
}

// keepAt is when an idle sender asks for a sign of life.
func (s *sendHalf) keepAt(e *Endpoint) time.Duration {
	return max(e.heard, s.spokeAt) + e.cfg.Inactivity/3
}

// admitted reports whether the congestion window takes the next datagram. It waits until a full one
// fits, if there is that much to send.
func (s *sendHalf) admitted() bool {
	next := min(s.cfg.Datagram, s.Waiting+unitReserve) + packetOverhead
	return s.probe || s.bytes == 0 || s.bytes+next <= s.cwnd
}

// flight is what is under way: the units that were sent and of which nothing is known, in the order
// of their datagrams.
type flight struct {
	flights        []flying // ring by number, as long as that of the units
	oldest, newest uint64   // ends of the list
	bytes          int      // with headers
}

// flying is a unit that is under way.
type flying struct {
	at     time.Duration
	charge int    // what it adds to the bytes under way
	older  uint64 // the unit that was sent before it and is under way, 0: none
	newer  uint64
}

func (f *flight) flying(number uint64) *flying { return &f.flights[number&uint64(len(f.flights)-1)] }

// charge adds bytes to those of a unit that is under way.
func (f *flight) charge(number uint64, bytes int) {
	f.flying(number).charge += bytes
	f.bytes += bytes
}

// depart puts a unit at the new end of those under way.
func (f *flight) depart(number uint64, at time.Duration) {
	*f.flying(number) = flying{at: at, older: f.newest}
	if f.newest != 0 {
		f.flying(f.newest).newer = number
	} else {
		f.oldest = number
	}
	f.newest = number
}

// land takes a unit out of those under way.
func (f *flight) land(number uint64) {
	u := f.flying(number)
	if u.older != 0 {
		f.flying(u.older).newer = u.newer
	} else {
		f.oldest = u.newer
	}
	if u.newer != 0 {
		f.flying(u.newer).older = u.older
	} else {
		f.newest = u.older
	}
	f.bytes -= u.charge
	u.charge = 0
}

// clear forgets all that is under way.
func (f *flight) clear() { f.oldest, f.newest, f.bytes = 0, 0, 0 }
