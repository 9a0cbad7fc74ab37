package soaprm

// Unwanted says that nobody waits for the reply to a message any more, or that there is none: the
// message is settled as soon as it is acknowledged.
func (s *SequenceSource) Unwanted(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.sent[number]; t != nil {
		t.oneWay = true
	}
}
