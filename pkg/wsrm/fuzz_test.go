package wsrm_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// script is what a fuzzer has happen to two ends: octets that are read as steps.
type script struct{ octets []byte }

func (s *script) next() int {
	if len(s.octets) == 0 {
		return 0
	}
	b := s.octets[0]
	s.octets = s.octets[1:]
	return int(b)
}

func (s *script) take(n int) []byte {
	n = min(n, len(s.octets))
	b := s.octets[:n]
	s.octets = s.octets[n:]
	return b
}

// puppet is one of the ends.
type puppet struct {
	cfg    wsrm.Config
	engine *wsrm.Engine
	wire   []piece // on their way to it
	open   []uint64
	seen   map[uint64]bool
}

// piece is what is on its way: octets, or on a carrier a unit.
type piece struct {
	octets []byte
	unit   *wsrm.Unit
}

// read gives what an engine is told of a piece.
func (a *puppet) read(t *testing.T, w piece) (p wsrm.Packet) {
	if w.unit != nil {
		return wsrm.Packet{Floor: 1, Units: []wsrm.Unit{*w.unit}}
	}
	require.NoError(t, a.engine.Codec().Parse(w.octets, &p))
	return p
}

// step steps an end; what it sends is on its way to the other.
func (a *puppet) step(t *testing.T, b *puppet, now time.Time, ev wsrm.Event) error {
	actions, err := a.engine.Step(now, ev)
	if ev.Kind == wsrm.Committed && err == nil {
		a.seen[ev.Number] = true
	}
	for _, action := range actions {
		switch action.Kind {
		case wsrm.Transmit:
			if a.cfg.Carried && len(action.Packet.Units) > 0 {
				for _, u := range action.Packet.Units {
					u.Payload = bytes.Clone(u.Payload)
					b.wire = append(b.wire, piece{unit: &u})
				}
				continue
			}
			octets := a.engine.Codec().Append(nil, action.Packet)
			assert.True(t, a.cfg.Carried || len(octets) <= a.cfg.Datagram, "a datagram of %d octets", len(octets))
			b.wire = append(b.wire, piece{octets: octets})
		case wsrm.Deliver:
			_, twice := a.seen[action.Number]
			assert.False(t, twice, "%d is delivered twice", action.Number)
			lossy := a.cfg.Assurance == wsrm.AtMostOnce && !a.cfg.Carried
			a.seen[action.Number] = lossy
			if !lossy {
				a.open = append(a.open, action.Number)
			}
		case wsrm.WakeAt:
			assert.False(t, !action.At.IsZero() && action.At.Before(now))
		default:
		}
	}
	return err
}

// crash begins another life of an end, from the state it kept.
func (a *puppet) crash(t *testing.T) {
	restored, err := wsrm.Restore(a.cfg, a.engine.AppendState(nil))
	require.NoError(t, err)
	a.engine, a.open = restored, nil
	// What was not committed may be delivered again.
	for number, committed := range a.seen {
		if !committed {
			delete(a.seen, number)
		}
	}
}

// carriers cuts the one there is, and has another if up.
func carriers(t *testing.T, ends [2]*puppet, now time.Time, up bool) {
	for _, kind := range []wsrm.EventKind{wsrm.Disconnected, wsrm.Connected} {
		if kind == wsrm.Connected && !up {
			return
		}
		for i, a := range ends {
			a.wire = nil
			require.NoError(t, a.step(t, ends[1-i], now, wsrm.Event{Kind: kind}))
		}
	}
}

// fuzzed is a configuration that an octet chooses.
func fuzzed(kind int) wsrm.Config {
	cfg := wsrm.Config{Assurance: wsrm.Assurance(kind%3 + 1), Ordered: kind/3%2 == 0, Carried: kind/6%2 == 1, Window: 64, Hold: 4000, Datagram: 256, Limit: 11, Inactivity: time.Minute, Unanswered: 10 * time.Second}
	cfg.Ordered = cfg.Ordered || cfg.Carried && cfg.Assurance == wsrm.AtMostOnce
	return cfg
}

// FuzzEngine has anything happen to two ends, in any order: messages, datagrams lost, repeated, out of order or made up, carriers that break, commits, crashes, time. Nothing panics, no datagram is too long, a state
// always comes back, and between ends that only heard each other exactly-once is exactly once.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{2, 0, 0, 5, 1, 0, 3, 0, 0, 1, 9, 4, 1, 0})
	f.Add([]byte{5, 0, 0, 255, 0, 200, 1, 0, 3, 0, 0, 3, 1, 0, 1, 200, 6, 1, 1, 255})
	f.Add([]byte{0, 0, 0, 9, 8, 1, 12, 1, 1, 2, 1, 0, 3, 'a', 'b', 'c', 1, 1, 1, 9})
	f.Add([]byte{4, 8, 0, 10, 0x10, 0x08, 1, 0, 0, 1, 0, 0xff, 0xff, 1, 7, 0, 7, 1, 5, 0, 1, 90})
	// On carriers: a connection, messages, what they bring, a commit, a crash, another connection.
	f.Add([]byte{8, 7, 5, 0, 9, 0, 8, 1, 1, 200, 0, 200, 0, 200, 0, 4, 1, 1, 1, 6, 7, 5, 1, 1, 200, 0, 4, 1, 2, 0})
	f.Add([]byte{10, 7, 5, 0, 9, 1, 1, 200, 0, 7, 6, 0, 3, 7, 5, 1, 1, 200, 0, 200, 0, 5, 4, 0, 1, 1, 2, 0})
	// At-most-once: what a carrier took along is given up.
	f.Add([]byte{6, 7, 5, 0, 9, 0, 8, 1, 1, 200, 0, 4, 1, 7, 5, 0, 7, 1, 1, 200, 0, 200, 0, 4, 1, 1, 1, 6, 7, 5})
	// Order is given up: three messages, the last two of which arrive, then the first.
	f.Add([]byte{2, 0, 9, 1, 1, 0, 9, 1, 1, 0, 200, 1, 1, 130, 2, 130, 1, 135, 7, 130, 0, 132, 132, 1, 1})
	f.Fuzz(func(t *testing.T, octets []byte) {
		s := &script{octets}
		cfg := fuzzed(s.next())
		now := start
		var ends [2]*puppet
		for i := range ends {
			ends[i] = &puppet{cfg: cfg, engine: engine(t, cfg), seen: map[uint64]bool{}}
		}
		honest := true
		for range 400 {
			if len(s.octets) == 0 {
				break
			}
			op := s.next()
			who := op >> 7
			a, b := ends[who], ends[1-who]
			ev := wsrm.Event{Kind: wsrm.Wake}
			var p wsrm.Packet
			switch op % 9 {
			case 0:
				ev = wsrm.Event{Kind: wsrm.Send, Message: make([]byte, s.next()*4)}
			case 1:
				now = now.Add(time.Duration(s.next()) * 20 * time.Millisecond)
			case 2, 3: // one of those on their way arrives, on a carrier the first, and with 3 stays on its way, but on a carrier
				if len(a.wire) == 0 {
					continue
				}
				i := s.next() % len(a.wire)
				if cfg.Carried {
					i = 0
				}
				p = a.read(t, a.wire[i])
				ev = wsrm.Event{Kind: wsrm.Arrived, Packet: &p}
				if op%9 == 2 || cfg.Carried {
					a.wire = append(a.wire[:i:i], a.wire[i+1:]...)
				}
			case 4:
				ev = wsrm.Event{Kind: wsrm.Committed, Number: uint64(s.next())}
				if len(a.open) > 0 {
					ev.Number = a.open[0]
					a.open = a.open[1:]
				}
			case 5:
				ev.Kind = wsrm.Close
			case 6: // a crash, with the state kept
				a.crash(t)
				if cfg.Carried {
					carriers(t, ends, now, false)
				}
			case 7:
				kind := s.next() % 7
				if (kind == 5 || kind == 6) && cfg.Carried {
					carriers(t, ends, now, kind == 5)
					continue
				}
				ev.Kind = []wsrm.EventKind{wsrm.Begun, wsrm.Abort, wsrm.Moved, wsrm.Await, wsrm.Rest, wsrm.Connected, wsrm.Disconnected}[kind]
				if len(a.open) > 0 {
					ev.Number = a.open[0]
				}
			case 8: // something made up
				if a.engine.Codec().Parse(s.take(s.next()), &p) != nil {
					continue
				}
				honest = false
				ev = wsrm.Event{Kind: wsrm.Arrived, Packet: &p}
			}
			err := a.step(t, b, now, ev)
			if honest && ev.Kind == wsrm.Arrived {
				require.NoError(t, err)
			}
		}
	})
}

// FuzzRestore: whatever a store gives back, it is refused, or an engine comes of it that works.
func FuzzRestore(f *testing.F) {
	cfgs := []wsrm.Config{
		{Assurance: wsrm.AtMostOnce, Window: 64, Hold: 4000, Datagram: 256, Limit: 11}, {Assurance: wsrm.AtLeastOnce, Window: 64, Hold: 4000, Datagram: 256, Limit: 11}, {Assurance: wsrm.ExactlyOnce, Ordered: true, Window: 64, Hold: 4000, Datagram: 256, Limit: 11},
		{Assurance: wsrm.AtLeastOnce, Carried: true, Window: 64, Hold: 4000, Limit: 11}, {Assurance: wsrm.ExactlyOnce, Ordered: true, Carried: true, Window: 64, Hold: 4000, Limit: 11},
		{Assurance: wsrm.AtMostOnce, Ordered: true, Carried: true, Window: 64, Hold: 4000, Limit: 11},
	}
	for i, cfg := range cfgs {
		w := newWorld(plan{cfg: cfg, profile: "gprs,loss=20%", seed: uint64(i), messages: [2]int{50, 10}, sizes: small, commit: time.Second})
		for turn := range 4 {
			w.run(time.Duration(turn)*2*time.Second, func() bool { return false })
			f.Add(i, w.ends[0].engine.AppendState(nil))
			f.Add(i, w.ends[1].engine.AppendState(nil))
		}
	}
	f.Fuzz(func(t *testing.T, which int, state []byte) {
		cfg := cfgs[uint(which)%uint(len(cfgs))]
		e, err := wsrm.Restore(cfg, state)
		if err != nil {
			assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState})
			return
		}
		now := start
		if cfg.Carried {
			_, err := e.Step(now, wsrm.Event{Kind: wsrm.Connected})
			require.NoError(t, err)
		}
		for n := uint64(1); n < 5; n++ {
			_, _ = e.Step(now, wsrm.Event{Kind: wsrm.Send, Message: make([]byte, 300)})
			_, _ = arrive(e, now, wsrm.Packet{Number: n, Floor: 1, Units: []wsrm.Unit{unit(n, "x")}, HasAck: true, Ack: wsrm.Ack{Done: n, Echo: n, Ranges: []wsrm.Range{{n + 2, n + 9}}}})
			actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
			require.NoError(t, err)
			for _, a := range actions {
				if a.Kind == wsrm.Transmit && !cfg.Carried {
					assert.LessOrEqual(t, len(e.Codec().Append(nil, a.Packet)), cfg.Datagram)
				}
			}
			now = now.Add(time.Second)
		}
		_, err = wsrm.Restore(cfg, e.AppendState(nil))
		assert.NoError(t, err)
	})
}
