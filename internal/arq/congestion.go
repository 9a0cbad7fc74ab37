package arq

import (
	"time"

	"github.com/hhfr/hhfr/internal/window"
)

// segment is the largest datagram with the headers below it: SMSS of RFC 5681.
func (s *sendHalf) segment() int { return s.cfg.Datagram + packetOverhead }

// grow opens the congestion window for bytes that left the network, if it was the bound (RFC 5681
// section 3.1, RFC 3465, RFC 7661's concern).
func (s *sendHalf) grow(acked, flight int) {
	if !s.slowStart() && flight+s.segment() <= s.cwnd || s.slowStart() && 2*flight < s.cwnd {
		return
	}
	if s.slowStart() {
		s.cwnd += min(acked, 2*s.segment())
	} else {
		s.cwnd += max(1, s.segment()*acked/s.cwnd)
	}
	s.cwnd = min(s.cwnd, 1<<30)
}

func (s *sendHalf) slowStart() bool { return s.cwnd < s.ssthresh }

// congested answers a loss event, flight being what was under way when it was found (RFC 5681
// section 3.2, equation 4).
func (s *sendHalf) congested(flight int) {
	s.ssthresh = max(flight/2, 2*s.segment())
	s.cwnd = min(s.cwnd, s.ssthresh)
	s.recovering = s.Packet
}

// checkTimeout undoes the last time-out if what it took for lost had arrived: the peer has it, and
// has seen nothing that was sent since (RFC 4015).
func (e *Endpoint) checkTimeout(a *window.AckPacket) {
	s := &e.out
	if s.undo.packet == 0 {
		return
	}
	if a.Echo > s.undo.packet {
		s.undo = undo{}
		return
	}
	has := a.Done >= s.undo.number
	for _, r := range a.Ranges {
		has = has || r.First <= s.undo.number && s.undo.number <= r.Last
	}
	if has {
		s.cwnd, s.ssthresh = max(s.cwnd, s.undo.cwnd), max(s.ssthresh, s.undo.ssthresh)
		s.undo = undo{}
		e.stats.Undone++
	}
}

// rested closes the window after a pause longer than the timer: what is known of the path is old
// (RFC 5681 section 4.1).
func (s *sendHalf) rested(now time.Duration) {
	if s.spoke && now-s.spokeAt > s.rto && s.backoff == 0 {
		s.cwnd = min(s.cwnd, min(4*s.segment(), max(2*s.segment(), 4380)))
	}
}

// paced puts off the next datagram so that a window is spread over a round trip (RFC 8085 section
// 3.1.1 warns of bursts). Two datagrams may go together.
func (s *sendHalf) paced(now time.Duration, bytes int) {
	if s.srtt == 0 {
		return
	}
	perTrip := s.cwnd + s.cwnd/4
	if s.slowStart() {
		perTrip = 2 * s.cwnd
	}
	gap := time.Duration(float64(s.srtt) * float64(bytes) / float64(perTrip))
	s.paceAt = max(s.paceAt, now-gap) + gap
}
