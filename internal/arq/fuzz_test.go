package arq_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/window"
)

// script is what a fuzzer has happen to two ends: bytes that are read as steps.
type script []byte

func (s *script) next() int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b)
}

func (s *script) take(n int) []byte {
	n = min(n, len(*s))
	b := (*s)[:n]
	*s = (*s)[n:]
	return b
}

// puppet is one of the ends.
type puppet struct {
	engine *arq.Endpoint
	wire   [][]byte // on their way to it
	open   []uint64
	seen   uint64 // the last message delivered
}

// step steps an end; what it sends is on its way to the peer.
func (a *puppet) step(t *testing.T, b *puppet, now time.Time, ev arq.Event) error {
	actions, err := a.engine.Step(now, ev)
	for _, action := range actions {
		switch action.Kind {
		case arq.Transmit:
			datagram := action.Packet.Append(nil)
			assert.LessOrEqual(t, len(datagram), fuzzed.Datagram)
			b.wire = append(b.wire, datagram)
		case arq.Deliver:
			assert.Greater(t, action.Number, a.seen, "delivered twice, or out of order")
			a.seen = action.Number
			a.open = append(a.open, action.Number)
		case arq.WakeAt:
			assert.False(t, !action.At.IsZero() && action.At.Before(now))
		default:
		}
	}
	return err
}

var fuzzed = arq.Config{
	Window: 64, Hold: 4000, Datagram: 256, Inactivity: time.Minute, Unanswered: 10 * time.Second,
}

// FuzzEngine has anything happen to two ends, in any order: messages, datagrams lost, repeated, out
// of order or made up, commits, time. Nothing panics, no datagram is too long, and what an honest
// peer sends is never refused, and delivered once, in order.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0, 0, 5, 1, 0, 3, 0, 0, 1, 9, 4, 1, 0})
	f.Add([]byte{0, 0, 255, 0, 200, 1, 0, 3, 0, 0, 3, 1, 0, 1, 200, 6, 1, 1, 255})
	// Made up: an acknowledgement of nothing.
	f.Add([]byte{0, 10, 1, 0, 7, 10, 0x10, 0x08, 1, 0, 0, 1, 0, 0xff, 0xff, 1, 6, 0, 5, 0, 1, 90})
	// Three messages, the last two of which arrive, then the first.
	f.Add([]byte{0, 9, 1, 1, 0, 9, 1, 1, 0, 200, 1, 1, 130, 2, 130, 1, 128, 130, 0, 132, 132, 1, 1})
	f.Fuzz(func(t *testing.T, steps []byte) { play(t, steps) })
}

func play(t *testing.T, steps []byte) {
	s := (*script)(&steps)
	now, honest := start, true
	ends := [2]*puppet{{engine: engine(t, fuzzed)}, {engine: engine(t, fuzzed)}}
	for range 400 {
		if len(*s) == 0 {
			return
		}
		op := s.next()
		who := op >> 7
		a, b := ends[who], ends[1-who]
		ev := arq.Event{Kind: arq.Wake}
		var p window.Packet
		switch op % 8 {
		case 0:
			ev = arq.Event{Kind: arq.Send, Message: make([]byte, s.next()*4)}
		case 1:
			now = now.Add(time.Duration(s.next()) * 20 * time.Millisecond)
		case 2, 3: // one of those on their way arrives, and with 3 stays on its way
			if len(a.wire) == 0 {
				continue
			}
			i := s.next() % len(a.wire)
			require.NoError(t, p.Parse(a.wire[i]))
			ev = arq.Event{Kind: arq.Arrived, Packet: &p}
			if op%8 == 2 {
				a.wire = append(a.wire[:i:i], a.wire[i+1:]...)
			}
		case 4:
			ev = arq.Event{Kind: arq.Committed, Number: uint64(s.next())}
			if len(a.open) > 0 {
				ev.Number = a.open[0]
				a.open = a.open[1:]
			}
		case 5:
			ev.Kind = arq.Close
		case 6:
			ev.Kind = []arq.EventKind{arq.Ask, arq.Moved, arq.Await, arq.Rest}[s.next()%4]
		case 7: // something made up
			if p.Parse(s.take(s.next())) != nil {
				continue
			}
			honest = false
			ev = arq.Event{Kind: arq.Arrived, Packet: &p}
		}
		err := a.step(t, b, now, ev)
		if honest && ev.Kind == arq.Arrived {
			require.NoError(t, err)
		}
	}
}
