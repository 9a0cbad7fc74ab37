package window

// sentState is where a unit of the sender is.
type sentState uint8

const (
	queued  sentState = iota // accepted, never sent
	flying                   // sent, nothing known
	lost                     // to be sent again
	arrived                  // at the peer, which may lose it again
)

// sentUnit is one unit that is not done.
type sentUnit struct {
	payload     []byte
	packet      uint64 // the packet that carried it last
	state       sentState
	first, last bool
}

// Sender is the sending half of a sequence (RMS): what was accepted and is not done. Its fields are
// for reading, but for Packet, Echo and Instance.
type Sender struct {
	// Landed, if given, is called for each unit that is not under way any more.
	Landed func(number uint64)

	Done uint64 // the peer is done with all up to here
	Last uint64 // accepted
	Sent uint64 // handed out at least once

	Packet   uint64 // number of the last packet
	Echo     uint64 // the greatest one that the peer has seen
	Instance uint64 // of the peer

	Waiting int // bytes of payload of units queued or lost

	units   []sentUnit // ring by number; it grows up to the window
	window  uint64
	hold    int
	held    int    // bytes of payload of units above Done
	lost    int    // units lost
	arrived uint64 // units that arrived
	lostAt  uint64 // none below is lost
}

// NewSender makes one that keeps at most window units, a power of two, of hold bytes together.
func NewSender(window, hold int) Sender {
	return Sender{units: make([]sentUnit, minRing), window: uint64(window), hold: hold}
}

func (s *Sender) unit(number uint64) *sentUnit { return &s.units[number&uint64(len(s.units)-1)] }

// Size is how many units the ring of the sender takes now.
func (s *Sender) Size() int { return len(s.units) }

// Accept takes a message, in units of at most size bytes, and keeps the slice. Errors: TooLarge,
// Rollover, Full.
func (s *Sender) Accept(message []byte, size int) error {
	n := uint64(max(1, (len(message)+size-1)/size))
	switch {
	case n > s.window || len(message) > s.hold:
		return Fault(TooLarge)
	case s.Last+n > MaxNumber-s.window:
		return Fault(Rollover)
	case s.Last-s.Done+n > s.window || s.held+len(message) > s.hold:
		return Fault(Full)
	}
	s.held += len(message)
	s.Waiting += len(message)
	s.units = ringFor(s.units, s.Done, s.Last+n)
	for i := range int(n) {
		payload := message[min(i*size, len(message)):min((i+1)*size, len(message))]
		s.Last++
		*s.unit(s.Last) = sentUnit{payload: payload, first: i == 0, last: i == int(n)-1}
	}
	return nil
}

// Pending reports whether something is to be sent.
func (s *Sender) Pending() bool { return s.lost > 0 || s.Sent < s.Last }

// Lost reports whether something is to be sent again.
func (s *Sender) Lost() bool { return s.lost > 0 }

// Next gives the number of the unit to be sent next: of those lost, the lowest first.
func (s *Sender) Next() (uint64, bool) {
	if s.lost > 0 {
		for s.lostAt = max(s.lostAt, s.Done+1); s.unit(s.lostAt).state != lost; s.lostAt++ {
		}
		return s.lostAt, true
	}
	return s.Sent + 1, s.Sent < s.Last
}

// Unit gives the unit of a number.
func (s *Sender) Unit(number uint64) Unit {
	u := s.unit(number)
	return Unit{Number: number, First: u.first, Last: u.last, Payload: u.payload}
}

// PacketOf is the number of the packet that carried a unit last.
func (s *Sender) PacketOf(number uint64) uint64 { return s.unit(number).packet }

// Launch notes that the next unit is under way, in a packet; again: it was before.
func (s *Sender) Launch(number, packet uint64) (again bool) {
	u := s.unit(number)
	if again = u.state == lost; again {
		s.lost--
	} else {
		s.Sent = number
	}
	s.Waiting -= len(u.payload)
	u.state, u.packet = flying, packet
	return again
}

// Lose has a unit sent again that was under way.
func (s *Sender) Lose(number uint64) {
	s.land(number)
	s.again(number, s.unit(number))
}

func (s *Sender) land(number uint64) {
	if s.Landed != nil {
		s.Landed(number)
	}
}

// again has a unit sent again that is not flying.
func (s *Sender) again(number uint64, u *sentUnit) {
	if u.state == arrived {
		s.arrived--
	}
	u.state = lost
	s.lost++
	s.Waiting += len(u.payload)
	s.lostAt = min(s.lostAt, number)
}

// Replay has everything sent again that was sent and is not done: its carrier is gone.
func (s *Sender) Replay() {
	for number := s.Done + 1; number <= s.Sent; number++ {
		if u := s.unit(number); u.state == flying || u.state == arrived {
			s.again(number, u)
		}
	}
}

// Unsend makes the units from a number on such that were never handed out.
func (s *Sender) Unsend(from uint64) {
	for from = max(from, s.Done+1); s.Sent >= from; s.Sent-- {
		u := s.unit(s.Sent)
		s.leave(u)
		u.state = queued
		s.Waiting += len(u.payload)
	}
}

// leave takes a unit out of what is counted of its state.
func (s *Sender) leave(u *sentUnit) {
	switch u.state {
	case lost:
		s.lost--
		s.Waiting -= len(u.payload)
	case queued:
		s.Waiting -= len(u.payload)
	case arrived:
		s.arrived--
	case flying:
	}
}

// Advance moves Done up to a number all below which is over, and forgets those units.
func (s *Sender) Advance(to uint64) (moved bool) {
	for s.Done < to {
		s.Done++
		u := s.unit(s.Done)
		if u.state == flying {
			s.land(s.Done)
		}
		s.leave(u)
		s.held -= len(u.payload)
		*u = sentUnit{}
		moved = true
	}
	s.Sent = max(s.Sent, s.Done)
	return moved
}

// Drop forgets all that is not done. The number of the last unit stays as it is if the peer was
// told so; else it is that of the last one sent.
func (s *Sender) Drop(told bool) {
	for number := s.Done + 1; number <= s.Last; number++ {
		*s.unit(number) = sentUnit{}
	}
	if !told {
		s.Last = s.Sent
	}
	s.Sent = s.Last
	s.held, s.Waiting, s.lost, s.arrived = 0, 0, 0, 0
}
