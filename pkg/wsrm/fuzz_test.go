package wsrm_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// script is what a fuzzer has happen to two ends: bytes that are read as steps.
type script struct{ bytes []byte }

func (s *script) next() int {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return int(b)
}

func (s *script) take(n int) []byte {
	n = min(n, len(s.bytes))
	b := s.bytes[:n]
	s.bytes = s.bytes[n:]
	return b
}

// puppet is one of the ends.
type puppet struct {
	cfg     wsrm.Config
	machine *wsrm.Machine
	wire    []wsrm.Event // on their way to it
	open    []uint64
	seen    map[uint64]bool // delivered; true: and committed
}

// step steps an end; what it sends is on its way to the peer.
func (a *puppet) step(t *testing.T, b *puppet, now time.Time, ev wsrm.Event) error {
	actions, err := a.machine.Step(now, ev)
	if ev.Kind == wsrm.Committed && err == nil {
		a.seen[ev.Number] = true
	}
	for _, action := range actions {
		switch action.Kind {
		case wsrm.Transmit:
			payload := bytes.Clone(action.Message)
			b.wire = append(b.wire, wsrm.Event{Kind: wsrm.Arrived, Number: action.Number, Message: payload})
		case wsrm.Say:
			b.wire = append(b.wire, wsrm.Event{Kind: wsrm.Heard, Message: action.Message})
		case wsrm.Deliver:
			_, twice := a.seen[action.Number]
			assert.False(t, twice, "%d is delivered twice", action.Number)
			a.seen[action.Number] = false
			a.open = append(a.open, action.Number)
		case wsrm.WakeAt:
			assert.False(t, !action.At.IsZero() && action.At.Before(now))
		default:
		}
	}
	return err
}

// crash begins another life of an end, from the state it kept.
func (a *puppet) crash(t *testing.T) {
	restored, err := wsrm.RestoreMachine(a.cfg, a.machine.AppendState(nil))
	require.NoError(t, err)
	a.machine, a.open = restored, nil
	// What was not committed may be delivered again.
	for number, committed := range a.seen {
		if !committed {
			delete(a.seen, number)
		}
	}
}

// reconnect cuts the connection there is, and makes another if up.
func reconnect(t *testing.T, ends [2]*puppet, now time.Time, up bool) {
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

// fuzzed is a configuration that a byte chooses.
func fuzzed(kind int) wsrm.Config {
	cfg := wsrm.Config{Assurance: wsrm.Assurance(kind%3 + 1), Ordered: kind/3%2 == 0, Window: 64, Hold: 4000}
	cfg.Ordered = cfg.Ordered || cfg.Assurance == wsrm.AtMostOnce
	return cfg
}

// FuzzEngine has anything happen to two ends, in any order: messages, words made up, connections
// that break, commits, crashes, time. Nothing panics, a state always comes back, what an honest
// peer says is never refused, and nothing is delivered again that is done.
func FuzzEngine(f *testing.F) {
	// A connection, messages, what they bring, a commit, a crash, another connection.
	f.Add([]byte{2, 7, 5, 0, 9, 0, 8, 1, 1, 200, 0, 200, 0, 200, 0, 4, 1, 1, 1, 6, 7, 5, 1, 1, 200, 0, 4, 1, 2, 0})
	f.Add([]byte{4, 7, 5, 0, 9, 1, 1, 200, 0, 7, 6, 0, 3, 7, 5, 1, 1, 200, 0, 200, 0, 5, 4, 0, 1, 1, 2, 0})
	// At-most-once: what a connection took along is given up.
	f.Add([]byte{0, 7, 5, 0, 9, 0, 8, 1, 1, 200, 0, 4, 1, 7, 5, 0, 7, 1, 1, 200, 0, 200, 0, 4, 1, 1, 1, 6, 7, 5})
	// Made up: a word that acknowledges nothing.
	f.Add([]byte{4, 8, 0, 10, 0x10, 0x08, 1, 0, 0, 1, 0, 0xff, 0xff, 1, 7, 0, 7, 1, 5, 0, 1, 90})
	f.Fuzz(func(t *testing.T, steps []byte) { play(t, steps) })
}

func play(t *testing.T, steps []byte) {
	s := &script{steps}
	cfg := fuzzed(s.next())
	now, honest := start, true
	var ends [2]*puppet
	for i := range ends {
		ends[i] = &puppet{cfg: cfg, machine: machine(t, cfg), seen: map[uint64]bool{}}
	}
	for range 400 {
		if len(s.bytes) == 0 {
			return
		}
		op := s.next()
		who := op >> 7
		a, b := ends[who], ends[1-who]
		ev := wsrm.Event{Kind: wsrm.Wake}
		switch op % 9 {
		case 0:
			ev = wsrm.Event{Kind: wsrm.Send, Message: make([]byte, s.next()*4)}
		case 1:
			now = now.Add(time.Duration(s.next()) * 20 * time.Millisecond)
		case 2, 3: // the first of those on their way arrives
			if len(a.wire) == 0 {
				continue
			}
			ev = a.wire[0]
			a.wire = a.wire[1:]
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
			reconnect(t, ends, now, false)
		case 7:
			switch s.next() % 7 {
			case 0:
				if len(a.open) > 0 {
					_, _ = a.machine.Begin(now, a.open[0])
				}
			case 1:
				ev.Kind = wsrm.Abort
			case 2, 3, 4:
				ev.Kind = wsrm.Ask
			case 5:
				reconnect(t, ends, now, true)
				continue
			case 6:
				reconnect(t, ends, now, false)
				continue
			}
		case 8: // something made up
			ev = wsrm.Event{Kind: wsrm.Heard, Message: s.take(s.next())}
			honest = false
		}
		err := a.step(t, b, now, ev)
		if honest && (ev.Kind == wsrm.Arrived || ev.Kind == wsrm.Heard) {
			require.NoError(t, err)
		}
	}
}

// FuzzRestore: whatever a store gives back, it is refused, or an engine comes of it that works.
func FuzzRestore(f *testing.F) {
	cfgs := []wsrm.Config{
		{Assurance: wsrm.AtMostOnce, Ordered: true, Window: 64, Hold: 4000},
		{Assurance: wsrm.AtLeastOnce, Window: 64, Hold: 4000},
		{Assurance: wsrm.ExactlyOnce, Ordered: true, Window: 64, Hold: 4000},
	}
	for i, cfg := range cfgs {
		p := randomPlan(0)
		p.cfg, p.seed, p.crashes, p.commit = cfg, uint64(i), 0, time.Second
		w := newWorld(p)
		for turn := range 4 {
			w.run(time.Duration(turn)*2*time.Second, func() bool { return false })
			f.Add(i, w.ends[0].machine.AppendState(nil))
			f.Add(i, w.ends[1].machine.AppendState(nil))
		}
	}
	f.Fuzz(func(t *testing.T, which int, state []byte) {
		cfg := cfgs[uint(which)%uint(len(cfgs))]
		m, err := wsrm.RestoreMachine(cfg, state)
		if err != nil {
			assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState})
			return
		}
		now := start
		step(t, m, now, wsrm.Event{Kind: wsrm.Connected})
		for n := uint64(1); n < 5; n++ {
			_ = send(m, make([]byte, 300))
			_, _ = m.Step(now, arrived(n, "x"))
			ranges := []window.Range{{First: n + 2, Last: n + 9}}
			ack := window.AckPacket{Done: n, Echo: n, Ranges: ranges}
			_, _ = m.Step(now, heard(window.Packet{Number: n, Floor: 1, HasAck: true, Ack: ack}))
			step(t, m, now, wsrm.Event{Kind: wsrm.Wake})
			now = now.Add(time.Second)
		}
		_, err = wsrm.RestoreMachine(cfg, m.AppendState(nil))
		assert.NoError(t, err)
	})
}
