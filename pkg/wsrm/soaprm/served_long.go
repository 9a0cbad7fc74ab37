package soaprm

import "context"

// dropLongLocked drops long replies that are acknowledged, once that is stored.
func (s *servedPair) dropLongLocked() {
	before := s.longs
	s.longs = map[string]int64{}
	s.engine.Undone(func(_ uint64, stored []byte, _ bool) bool {
		if r := decodeReply(stored, s.bodies); r.long != nil && !s.record.Terminated {
			s.longs[r.long.name] = r.long.length
		}
		return true
	})
	for name := range before {
		if _, has := s.longs[name]; !has {
			in := s.bodies
			s.endpoint.outbox.run(func() {
				if err := in.Drop(context.WithoutCancel(s.endpoint.outbox.ctx), name); err != nil {
					s.endpoint.cfg.Log.Warn("a long reply is not dropped", "err", err)
				}
			})
		}
	}
}

// keepsLocked is how much is kept of replies: how many, bytes in the state and beside it.
func (s *servedPair) keepsLocked() (count, octets int, beside int64) {
	s.engine.Undone(func(_ uint64, stored []byte, _ bool) bool {
		count++
		octets += len(stored)
		return true
	})
	for _, length := range s.longs {
		beside += length
	}
	return count, octets, beside
}

// fullLocked reports whether the client acknowledges no replies: there may be no room for another
// one. Who cannot acknowledge them loses the oldest.
func (s *servedPair) fullLocked() bool {
	count, octets, beside := s.keepsLocked()
	return (s.record.Offered != "" || s.record.Decoupled) &&
		(count >= windowOf-1 || octets > hold-maxReply-1024 || beside > MaxMessage)
}

// isNextLocked reports whether all messages before one are done.
func (s *servedPair) isNextLocked(n uint64) bool {
	_, _, done := s.engine.Positions()
	return n == done+1
}
