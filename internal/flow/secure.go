package flow

import "github.com/hhfr/hhfr/internal/tlsrecord"

// TLS is what is known of a connection in TLS.
type TLS struct {
	// Why is the reason why it is not decrypted, or not to its end; 0: it is.
	Why tlsrecord.Why
	// Decrypted: something of it was decrypted. What its receiver takes is what was in TLS, at the
	// times at which its records were whole.
	Decrypted bool
	// Offered are the protocols that the client offered by ALPN; Protocol is the one that was
	// chosen.
	Offered  []string
	Protocol string
}

// secured passes what is in TLS on to a receiver, and everything else unchanged.
type secured struct {
	*Flow
	keys *tlsrecord.KeyLog
	to   Receiver
	seen bool // whether it is TLS is known
	conn *tlsrecord.Conn[Mark]
}

// Octets implements [Receiver].
func (s *secured) Octets(dir int, gap int64, b []byte, m Mark) error {
	if !s.seen {
		s.seen = true
		if tlsrecord.Begins(b) || gap != 0 && tlsrecord.Continues(b) {
			s.conn = tlsrecord.NewConn(s.keys, s.to.Octets)
			s.TLS = &TLS{}
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
func (a *Assembler) secure(f *Flow) Receiver {
	to := a.cfg.Flow(f)
	if to == nil {
		return nil
	}
	return &secured{Flow: f, keys: a.cfg.Keys, to: to}
}
