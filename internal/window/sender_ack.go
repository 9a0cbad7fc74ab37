package window

// Validate refuses acknowledgements of what was never sent, before anything changes; its work is
// bounded by the ranges. Errors: Invalid.
func (s *Sender) Validate(a *AckPacket) error {
	if a.Done > s.Sent || a.Echo > s.Packet {
		return Fault(Invalid)
	}
	for _, ranges := range [...][]Range{a.Ranges, a.Nacks} {
		before := a.Done
		for i, r := range ranges {
			if r.First <= before || i > 0 && r.First == before+1 || r.Last < r.First || r.Last > s.Sent {
				return Fault(Invalid)
			}
			before = r.Last
		}
	}
	return nil
}

// Current takes in the instance of an acknowledgement, and reports whether it still counts: not if
// it is of a life before. A peer that crashed has lost what merely arrived there.
func (s *Sender) Current(a *AckPacket) bool {
	if a.Instance < s.Instance {
		return false
	}
	if a.Instance > s.Instance {
		s.Instance = a.Instance
		for number := s.Done + 1; number <= s.Sent; number++ {
			if u := s.unit(number); u.state == arrived {
				s.again(number, u)
			}
		}
	}
	return true
}

// Acknowledged takes in what an acknowledgement says of units, and reports whether more is done.
func (s *Sender) Acknowledged(a *AckPacket) (moved bool) {
	for _, r := range a.Ranges {
		for number := max(r.First, s.Done+1); number <= r.Last; number++ {
			s.arrive(number)
		}
	}
	moved = s.Advance(max(a.Done, s.Done))
	s.refused(a)
	s.dropped(a)
	return moved
}

func (s *Sender) arrive(number uint64) {
	u := s.unit(number)
	switch u.state {
	case flying:
		s.land(number)
	case lost:
		s.leave(u)
	case queued, arrived:
		return
	}
	u.state = arrived
	s.arrived++
}

// refused has sent again what the peer could not keep; that is no sign of congestion.
func (s *Sender) refused(a *AckPacket) {
	for _, r := range a.Nacks {
		for number := max(r.First, s.Done+1); number <= r.Last; number++ {
			u := s.unit(number)
			switch {
			case u.packet > a.Echo: // sent again since: the nack speaks of the time before
			case u.state == flying:
				s.Lose(number)
			case u.state == arrived:
				s.again(number, u)
			}
		}
	}
}

// dropped looks for units that had arrived and that the ranges do not have any more: they were
// dropped for others, and the nack that said so got lost. An acknowledgement that is out of date
// says nothing of that.
func (s *Sender) dropped(a *AckPacket) {
	covered := uint64(0)
	for _, r := range a.Ranges {
		if r.Last > s.Done {
			covered += r.Last - max(r.First, s.Done+1) + 1
		}
	}
	if a.Echo != s.Echo || a.Done < s.Done || len(a.Ranges) == MaxRanges || s.arrived <= covered {
		return
	}
	ranges := a.Ranges
	for number := s.Done + 1; number <= s.Sent; number++ {
		for len(ranges) > 0 && ranges[0].Last < number {
			ranges = ranges[1:]
		}
		if u := s.unit(number); u.state == arrived && (len(ranges) == 0 || number < ranges[0].First) {
			s.again(number, u)
		}
	}
}

// HasArrived reports whether the peer has a unit, though not all before it.
func (s *Sender) HasArrived(number uint64) bool {
	return number > s.Done && number <= s.Sent && s.unit(number).state == arrived
}
