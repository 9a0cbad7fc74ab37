package flow

import "github.com/hhfr/hhfr/internal/tlsrecord"

// secured passes what is in TLS on to a receiver, and everything else unchanged.
type secured struct {
	*Flow
	keys *tlsrecord.KeyLog
	to   Receiver
	met  func() // is called when it is
	seen bool   // whether it is TLS is known
	conn *tlsrecord.Follower[Mark]
}

// Octets implements [Receiver].
func (s *secured) Octets(dir int, gap int64, b []byte, m Mark) error {
	if !s.seen {
		s.seen = true
		if tlsrecord.Begins(b) || gap != 0 && tlsrecord.Continues(b) {
			s.conn = tlsrecord.NewFollower(s.keys, s.to.Octets)
			s.TLS = &TLS{}
			if s.met != nil {
				s.met()
			}
		}
	}
	if s.conn == nil {
		return s.to.Octets(dir, gap, b, m)
	}
	m.Acked = 0 // it counts other bytes
	err := s.conn.Write(dir, gap, b, m)
	*s.TLS = TLS{s.conn.Why(), s.conn.Decrypted(), s.conn.Offered(), s.conn.Protocol()}
	return err
}

// Closed implements [Receiver].
func (s *secured) Closed() error { return s.to.Closed() }

// secure returns a receiver that decrypts a connection if it is in TLS.
func secure(keys *tlsrecord.KeyLog, met func(), f *Flow, to Receiver) Receiver {
	if to == nil {
		return nil
	}
	return &secured{Flow: f, keys: keys, met: met, to: to}
}
