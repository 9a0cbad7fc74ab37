package arq_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/window"
)

// What is counted of a datagram of flowConfig, with the headers below it, and the window it begins
// with.
const (
	segment       = 256 + 28
	initialWindow = 4 * segment
)

// flowConfig has every message fill a datagram, and no bound but congestion.
func flowConfig() arq.Config {
	return arq.Config{Datagram: 256, Window: 4096, Hold: 1 << 20, RTT: 100 * time.Millisecond}
}

// flow is an engine with much to send, on a path that takes as long for everything, and
// acknowledges every datagram.
type flow struct {
	t       *testing.T
	e       *arq.Endpoint
	now     time.Time
	at      time.Time // when the engine wants to be woken
	way     []flying
	times   []time.Time // when each datagram was sent
	bytes   []int       // of each, with headers
	drop    map[uint64]bool
	arrived map[uint64]bool
	done    uint64
	high    uint64
	falls   []fall
}

type flying struct {
	number, unit uint64
	at           time.Time
}

// fall is what became of the window, and the flight it was found in.
type fall struct{ flight, window int }

func newFlow(t *testing.T) *flow {
	t.Helper()
	f := &flow{t: t, e: engine(t, flowConfig()), now: start, drop: map[uint64]bool{}, arrived: map[uint64]bool{}}
	for range 3000 {
		require.NoError(t, send(f.e, make([]byte, 192)))
	}
	f.wake()
	return f
}

func (f *flow) wake() {
	f.t.Helper()
	actions, err := f.e.Step(f.now, arq.Event{Kind: arq.Wake})
	require.NoError(f.t, err)
	sent := false
	for _, a := range actions {
		switch a.Kind {
		case arq.Transmit:
			sent = true
			require.Len(f.t, a.Packet.Units, 1)
			f.way = append(f.way, flying{a.Packet.Number, a.Packet.Units[0].Number, f.now.Add(flowConfig().RTT)})
			f.times = append(f.times, f.now)
			f.bytes = append(f.bytes, len(a.Packet.Append(nil))+28)
		case arq.WakeAt:
			f.at = a.At
		default:
		}
	}
	if sent {
		require.LessOrEqual(f.t, f.e.Stats().Flight, f.e.Stats().Window)
	}
	require.Zero(f.t, f.e.Stats().Timeouts)
}

// acknowledge tells the engine what arrived, the last of it in the datagram echoed.
func (f *flow) acknowledge(echo uint64) {
	f.t.Helper()
	for f.arrived[f.done+1] {
		f.done++
	}
	ack := window.AckPacket{Done: f.done, Echo: echo}
	for n := f.done + 1; n <= f.high; n++ {
		if f.arrived[n] && f.arrived[n-1] && len(ack.Ranges) > 0 {
			ack.Ranges[len(ack.Ranges)-1].Last = n
		} else if f.arrived[n] {
			ack.Ranges = append(ack.Ranges, window.Range{First: n, Last: n})
		}
	}
	before := f.e.Stats()
	actions, err := arrive(f.e, f.now, window.Packet{HasAck: true, Ack: ack})
	require.NoError(f.t, err)
	for _, a := range actions {
		if a.Kind == arq.WakeAt {
			f.at = a.At
		}
	}
	if after := f.e.Stats().Window; after < before.Window {
		f.falls = append(f.falls, fall{before.Flight, after})
	}
}

// land has the first datagram on its way arrive, if it is not dropped.
func (f *flow) land() (echo uint64) {
	first := f.way[0]
	f.way = f.way[1:]
	if f.drop[first.number] {
		return 0
	}
	f.arrived[first.unit] = true
	f.high = max(f.high, first.unit)
	return first.number
}

// pass lets time pass, with all that happens in it.
func (f *flow) pass(d time.Duration) {
	f.t.Helper()
	for until := f.now.Add(d); ; {
		next := f.at
		landing := len(f.way) > 0 && !f.way[0].at.After(next)
		if landing {
			next = f.way[0].at
		}
		if next.After(until) {
			f.now = until
			return
		}
		f.now = next
		if landing {
			if echo := f.land(); echo != 0 {
				f.acknowledge(echo)
			}
		}
		f.wake()
	}
}

// all has everything on its way arrive, and be acknowledged at once, when the last of it is due.
func (f *flow) all() {
	f.t.Helper()
	f.now = f.way[len(f.way)-1].at
	echo := uint64(0)
	for len(f.way) > 0 {
		echo = f.land()
	}
	f.acknowledge(echo)
}

// lose has the datagrams that are sent so many behind the last one get lost.
func (f *flow) lose(behind ...uint64) {
	for _, n := range behind {
		f.drop[uint64(len(f.times))+n] = true
	}
}

func TestFlightStaysInTheWindow(t *testing.T) {
	for _, datagram := range []int{256, 548, 1472} {
		e := engine(t, arq.Config{Datagram: datagram})
		for range 200 {
			require.NoError(t, send(e, make([]byte, 150)))
		}
		_, err := e.Step(start, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		s := e.Stats()
		assert.Equal(t, min(4*(datagram+28), max(2*(datagram+28), 4380)), s.Window, "RFC 5681 section 3.1")
		assert.LessOrEqual(t, s.Flight, s.Window, "datagrams of %d", datagram)
		assert.Greater(t, s.Flight, s.Window-datagram-28, "there is more to send")
	}
}

func TestSlowStart(t *testing.T) {
	f := newFlow(t)
	assert.Equal(t, initialWindow, f.e.Stats().Window)
	f.pass(flowConfig().RTT)
	for n := range 5 {
		before := f.e.Stats().Window
		f.pass(flowConfig().RTT)
		after := f.e.Stats().Window
		assert.LessOrEqual(t, after, 2*before, "round trip %d", n)
		assert.GreaterOrEqual(t, after, before+before/2, "round trip %d", n)
	}
	// One acknowledgement of many opens it by two datagrams at most (RFC 3465 section 2.3).
	before := f.e.Stats().Window
	f.all()
	assert.Equal(t, before+2*segment, f.e.Stats().Window)
}

func TestCongestionAvoidance(t *testing.T) {
	f := newFlow(t)
	f.pass(400 * time.Millisecond)
	f.lose(1)
	f.pass(400 * time.Millisecond)
	require.Len(t, f.falls, 1)
	first := f.e.Stats().Window
	for n := range 10 {
		before := f.e.Stats().Window
		f.pass(flowConfig().RTT)
		assert.LessOrEqual(t, f.e.Stats().Window, before+segment, "round trip %d", n)
	}
	assert.GreaterOrEqual(t, f.e.Stats().Window, first+5*segment, "it does grow")
}

// Losses of datagrams that were under way together are one event, and halve the window once; one
// that was sent later is another.
func TestOneLossEventHalvesOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		lost  []uint64
		falls int
	}{
		"none":                     {nil, 0},
		"one":                      {[]uint64{1}, 1},
		"two in one round trip":    {[]uint64{1, 9}, 1},
		"many in one round trip":   {[]uint64{1, 5, 6, 12, 16}, 1},
		"two, round trips between": {[]uint64{1, 150}, 2},
	} {
		f := newFlow(t)
		f.pass(400 * time.Millisecond)
		f.lose(tc.lost...)
		f.pass(time.Second)
		assert.Len(t, f.falls, tc.falls, name)
		for _, fall := range f.falls {
			assert.Greater(t, fall.flight, 8*segment, name)
			assert.LessOrEqual(t, fall.window, fall.flight/2, name)
			assert.GreaterOrEqual(t, fall.window, (fall.flight-segment)/2,
				"%s: what the acknowledgement covers is not under way any more", name)
		}
	}
}

// Whatever the window lets go at once is spread over the round trip.
func TestPacing(t *testing.T) {
	for name, tc := range map[string]struct {
		lost []uint64
		pace float64 // windows in a round trip
	}{
		"slow start":           {nil, 2},
		"congestion avoidance": {[]uint64{1}, 1.25},
	} {
		f := newFlow(t)
		f.pass(400 * time.Millisecond)
		f.lose(tc.lost...)
		f.pass(400 * time.Millisecond)
		f.all() // the whole window is open
		first := len(f.times)
		s := f.e.Stats()
		require.Zero(t, s.Flight, name)
		f.wake()
		for began := f.now; f.at.Sub(began) < s.RTT; {
			f.now = f.at
			f.wake()
		}
		times, bytes := f.times[first:], f.bytes[first:]
		require.Greater(t, len(times), 10, name)
		for i := 2; i < len(times); i++ {
			assert.Less(t, times[i-2], times[i], "%s: three at one moment", name)
		}
		sum := 0
		for _, n := range bytes[2:] {
			sum += n
		}
		spread := float64(s.RTT) * float64(sum) / float64(s.Window) / tc.pace
		assert.InEpsilon(t, spread, float64(times[len(times)-1].Sub(times[0])), 0.02, name)
		assert.Greater(t, f.e.Stats().Flight, s.Window-segment, "%s: the window is full within the round trip", name)
	}
}

// What is known of the path is forgotten after a pause longer than the timer (RFC 5681 section
// 4.1), and only then.
func TestWindowAfterAPause(t *testing.T) {
	for _, long := range []bool{false, true} {
		f := newFlow(t)
		f.pass(400 * time.Millisecond)
		f.all()
		s := f.e.Stats()
		require.Greater(t, s.Window, 2*initialWindow)
		f.now = f.times[len(f.times)-1].Add(s.RTO)
		if long {
			f.now = f.now.Add(1)
		}
		sent := len(f.times)
		f.wake()
		require.Greater(t, len(f.times), sent)
		if long {
			assert.Equal(t, initialWindow, f.e.Stats().Window)
		} else {
			assert.Equal(t, s.Window, f.e.Stats().Window)
		}
	}
}
