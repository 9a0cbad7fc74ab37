package wsrm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

func send(e *wsrm.Engine, message []byte) error {
	_, err := e.Step(start, wsrm.Event{Kind: wsrm.Send, Message: message})
	return err
}

func TestWhatIsNotAccepted(t *testing.T) {
	is := func(code wsrm.Code, err error) {
		t.Helper()
		assert.ErrorIs(t, err, &wsrm.Error{Code: code})
	}
	e := engine(t, wsrm.Config{Assurance: wsrm.AtLeastOnce, Window: 64, Hold: 10_000, Datagram: 256})
	is(wsrm.TooLarge, send(e, make([]byte, 10_001)))
	require.NoError(t, send(e, make([]byte, 9_000)))
	is(wsrm.Full, send(e, make([]byte, 1_001)))
	assert.EqualValues(t, 47, e.Last(), "units of 192 octets")
	for range 17 {
		require.NoError(t, send(e, nil))
	}
	is(wsrm.Full, send(e, nil))
	is(wsrm.TooLarge, send(engine(t, wsrm.Config{Assurance: wsrm.AtLeastOnce, Window: 64, Datagram: 256}), make([]byte, 64*192+1)))

	_, err := e.Step(start, wsrm.Event{Kind: wsrm.Close})
	require.NoError(t, err)
	is(wsrm.Closed, send(e, nil))
	_, err = e.Step(start, wsrm.Event{Kind: wsrm.Close})
	is(wsrm.Closed, err)
	for _, ev := range []wsrm.Event{{}, {Kind: wsrm.Arrived}, {Kind: wsrm.Committed, Number: 1}, {Kind: wsrm.Begun, Number: 1}, {Kind: 99}} {
		_, err = e.Step(start, ev)
		is(wsrm.Misuse, err)
	}
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	fine := wsrm.Config{Assurance: wsrm.ExactlyOnce}
	for i, change := range []func(*wsrm.Config){
		func(c *wsrm.Config) { c.Assurance = 0 }, func(c *wsrm.Config) { c.Assurance = 4 }, func(c *wsrm.Config) { c.Limit = 1 << 63 }, func(c *wsrm.Config) { c.Window = 65 }, func(c *wsrm.Config) { c.Window = 32 },
		func(c *wsrm.Config) { c.Hold = -1 }, func(c *wsrm.Config) { c.Datagram = 255 }, func(c *wsrm.Config) { c.Datagram = 65001 }, func(c *wsrm.Config) { c.RTT = -1 },
		func(c *wsrm.Config) { c.MaxRTO = time.Millisecond }, func(c *wsrm.Config) { c.AckDelay = -1 }, func(c *wsrm.Config) { c.Inactivity = -1 }, func(c *wsrm.Config) { c.Instance = 1<<40 + 1 },
	} {
		cfg := fine
		change(&cfg)
		_, err := wsrm.New(cfg)
		assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadConfig}, "%d: %+v", i, cfg)
	}
	assert.NotEmpty(t, wsrm.ExactlyOnce.String()+wsrm.Complete.String())
}

// The retransmission timer, by RFC 6298: 1 s at first, doubled each time, at most 60 s and a quarter, for as long as something is heard or inactivity ends it.
func TestTimer(t *testing.T) {
	e := sendOne(t, wsrm.Config{Assurance: wsrm.AtLeastOnce}, 1)
	now, rto := start, time.Second
	for n := range 12 {
		early, err := e.Step(now.Add(rto-time.Microsecond), wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		for _, a := range early {
			assert.NotEqual(t, wsrm.Transmit, a.Kind, "the timer is never early")
		}
		now = now.Add(rto)
		if n > 0 {
			now = now.Add(rto / 4)
		}
		actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		p := find(t, actions, wsrm.Transmit).Packet
		assert.EqualValues(t, n+2, p.Number)
		assert.EqualValues(t, 1, p.Units[0].Number)
		rto = min(2*rto, time.Minute)
	}
	actions, err := e.Step(start.Add(10*time.Minute), wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	assert.EqualValues(t, 1, find(t, actions, wsrm.Unknown).Count)
	assert.Equal(t, wsrm.Inactive, find(t, actions, wsrm.Ended).Reason)
}

// A round trip is measured by RFC 6298 rules 2.2 and 2.3.
func TestRoundTrips(t *testing.T) {
	e := sendOne(t, wsrm.Config{Assurance: wsrm.AtLeastOnce}, 1)
	_, err := arrive(e, start.Add(2*time.Second), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Done: 1, Echo: 1}})
	require.NoError(t, err)
	assert.Equal(t, 2*time.Second, e.Stats().RTT)
	assert.Equal(t, 6*time.Second, e.Stats().RTO)
	now := start.Add(3 * time.Second)
	_, err = e.Step(now, wsrm.Event{Kind: wsrm.Send, Message: []byte("m")})
	require.NoError(t, err)
	_, err = e.Step(now, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	_, err = arrive(e, now.Add(time.Second), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Done: 2, Echo: 2}})
	require.NoError(t, err)
	assert.Equal(t, 1875*time.Millisecond, e.Stats().RTT)
	assert.Equal(t, 1875*time.Millisecond+4*time.Second, e.Stats().RTO)
}

// A time-out that only was too early is undone.
func TestEarlyTimeoutIsUndone(t *testing.T) {
	e := sendOne(t, wsrm.Config{Assurance: wsrm.AtLeastOnce}, 3)
	window := e.Stats().Window
	_, err := e.Step(start.Add(time.Second), wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	assert.Less(t, e.Stats().Window, window)
	_, err = arrive(e, start.Add(1500*time.Millisecond), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Done: 3, Echo: 1}})
	require.NoError(t, err)
	assert.Equal(t, int64(1), e.Stats().Undone)
	assert.GreaterOrEqual(t, e.Stats().Window, window)
}

// Messages accepted at one moment share datagrams, in both directions with acknowledgements.
func TestMessagesShareDatagrams(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, Datagram: 1472})
	for range 100 {
		require.NoError(t, send(e, make([]byte, 45)))
	}
	_, err := arrive(e, start, wsrm.Packet{Number: 1, Floor: 1, Units: []wsrm.Unit{unit(1, "x")}})
	require.NoError(t, err)
	actions, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	var units []int
	for _, a := range actions {
		if a.Kind == wsrm.Transmit {
			units = append(units, len(a.Packet.Units))
			assert.Equal(t, len(units) == 1, a.Packet.HasAck)
			assert.False(t, a.Packet.Request, "there is more to come")
		}
	}
	require.NotEmpty(t, units)
	assert.GreaterOrEqual(t, units[0], 31)
}

func TestAbort(t *testing.T) {
	for _, started := range []bool{false, true} {
		p := plan{cfg: wsrm.Config{Assurance: wsrm.ExactlyOnce}, profile: "14k4", seed: 1, messages: [2]int{100, 0}, sizes: func(*rand.Rand) int { return 500 }}
		w := newWorld(p)
		if started {
			w.run(3*time.Second, func() bool { return false })
		}
		e := w.ends[0]
		require.NoError(t, e.step(wsrm.Event{Kind: wsrm.Abort}))
		w.mangle = func(w *world, from int, datagram []byte) {
			var p wsrm.Packet
			require.NoError(t, w.ends[from].engine.Codec().Parse(datagram, &p))
			assert.Empty(t, p.Units, "nothing more is sent")
		}
		e.settle()
		require.True(t, w.run(time.Hour, w.over))
		var reasons []wsrm.Reason
		for _, a := range e.ended {
			if !a.Remote {
				reasons = append(reasons, a.Reason)
			}
		}
		assert.Equal(t, []wsrm.Reason{wsrm.Aborted}, reasons)
		for id := range e.next {
			assert.True(t, e.acked[id] || e.fate[id] || e.unsent[id], "message %d has no fate", id)
		}
		assert.Empty(t, w.fails)
	}
}

// An idle sequence stays, for as long as its ends answer.
func TestIdleSequenceIsKept(t *testing.T) {
	w := newWorld(plan{cfg: wsrm.Config{Assurance: wsrm.ExactlyOnce, Inactivity: time.Minute}, profile: "lte,loss=5%", seed: 1, messages: [2]int{0, 0}, sizes: small})
	for _, e := range w.ends {
		e.ids = -1 // does not close
	}
	assert.False(t, w.run(12*time.Hour, w.over))
	for _, e := range w.ends {
		assert.Empty(t, e.ended)
		assert.Less(t, w.packets[e.index], 12*60*12)
	}
	w.ends[1].engine = nil
	assert.True(t, w.run(13*time.Hour, w.ends[0].engine.Over))
}

// An end that holds less than the other sends refuses by nacks, also when those get lost, and in the end has all.
func TestNacks(t *testing.T) {
	for seed := range uint64(20) {
		p := plan{
			cfg: wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: seed%2 == 0, Datagram: 576}, profile: "3g,loss=20%,reorder=5%", seed: seed, messages: [2]int{300, 0}, hold: 3000,
			sizes: func(r *rand.Rand) int { return r.IntN(2000) },
		}
		w := newWorld(p)
		require.True(t, w.run(time.Hour, w.over), "seed %d", seed)
		require.Empty(t, w.fails)
		check(t, w)
	}
}

// What is restored writes the same state again, but for its life.
func TestStateComesBack(t *testing.T) {
	for seed := range uint64(30) {
		p := randomPlan(seed)
		w := newWorld(p)
		for turn := 1; turn < 20; turn++ {
			w.run(time.Duration(turn)*5*time.Second, func() bool { return false })
			for _, e := range w.ends {
				if e.engine == nil {
					continue
				}
				state := e.engine.AppendState(nil)
				first, err := wsrm.Restore(p.cfg, state)
				require.NoError(t, err, "seed %d", seed)
				once := first.AppendState(nil)
				second, err := wsrm.Restore(p.cfg, once)
				require.NoError(t, err, "seed %d", seed)
				twice := second.AppendState(nil)
				third, err := wsrm.Restore(p.cfg, twice)
				require.NoError(t, err)
				assert.InDelta(t, len(once), len(third.AppendState(nil)), 8)
				for n := range min(len(state), 40) {
					_, err := wsrm.Restore(p.cfg, state[:n])
					assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState}, fmt.Sprint(n))
				}
				other := p.cfg
				other.Ordered = !other.Ordered
				_, err = wsrm.Restore(other, state)
				assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState})
			}
		}
	}
}

// A destination that crashed has lost what merely arrived: it is sent again, whatever acknowledgements of the life before still say.
func TestCrashTakesBackWhatArrived(t *testing.T) {
	e := sendOne(t, wsrm.Config{Assurance: wsrm.ExactlyOnce}, 3)
	sent := func(at time.Duration, ack wsrm.Ack) (numbers []uint64) {
		t.Helper()
		_, err := arrive(e, start.Add(at), wsrm.Packet{HasAck: true, Ack: ack})
		require.NoError(t, err)
		actions, err := e.Step(start.Add(at), wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == wsrm.Transmit {
				for _, u := range a.Packet.Units {
					numbers = append(numbers, u.Number)
				}
			}
		}
		return numbers
	}
	assert.Empty(t, sent(100*time.Millisecond, wsrm.Ack{Instance: 1, Echo: 1, Ranges: []wsrm.Range{{1, 3}}}))
	assert.Equal(t, []uint64{2, 3}, sent(200*time.Millisecond, wsrm.Ack{Instance: 2, Done: 1}))
	assert.Empty(t, sent(210*time.Millisecond, wsrm.Ack{Instance: 1, Done: 1, Echo: 1, Ranges: []wsrm.Range{{2, 3}}}))
	assert.Equal(t, 2, int(e.Stats().Resent))
	_, err := e.Step(start.Add(20*time.Second), wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	assert.Equal(t, 4, int(e.Stats().Resent), "an old life's word does not count")

	state := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce}).AppendState(nil)
	for life := range uint64(3) {
		e, err := wsrm.Restore(wsrm.Config{Assurance: wsrm.ExactlyOnce}, state)
		require.NoError(t, err)
		state = e.AppendState(nil)
		_, err = arrive(e, start, wsrm.Packet{Number: 1, Floor: 1, Request: true})
		require.NoError(t, err)
		actions, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		assert.Equal(t, life+1, find(t, actions, wsrm.Transmit).Packet.Ack.Instance)
	}
}

// Two datagrams late is no loss, three are (RFC 5681); and so is a little more than a round trip.
func TestLossIsFoundBeforeTheTimer(t *testing.T) {
	// One message in each datagram, all at once.
	several := func(n int) *wsrm.Engine {
		e := engine(t, wsrm.Config{Assurance: wsrm.AtLeastOnce, Datagram: 256})
		for range n {
			require.NoError(t, send(e, make([]byte, 150)))
		}
		_, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		require.EqualValues(t, n, e.Stats().Sent)
		return e
	}
	wake := func(e *wsrm.Engine, at time.Duration) int64 {
		_, err := e.Step(start.Add(at), wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		return e.Stats().Resent
	}
	const rtt = 100 * time.Millisecond
	for last, resent := range map[uint64]int64{2: 0, 3: 0, 4: 1, 5: 1} {
		e := several(5)
		_, err := arrive(e, start.Add(rtt), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Echo: last, Ranges: []wsrm.Range{{2, last}}}})
		require.NoError(t, err)
		assert.Equal(t, resent, wake(e, rtt), "up to %d arrived", last)
		assert.Zero(t, e.Stats().Timeouts)
	}
	e := several(2)
	_, err := arrive(e, start.Add(rtt), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Echo: 2, Ranges: []wsrm.Range{{2, 2}}}})
	require.NoError(t, err)
	assert.Zero(t, wake(e, rtt))
	assert.Zero(t, wake(e, rtt+rtt/8-1))
	assert.EqualValues(t, 1, wake(e, rtt+rtt/8))
	assert.Zero(t, e.Stats().Timeouts)
}

// What comes first is needed first: it takes the room of what comes behind, which is asked for again.
func TestRoomIsForWhatComesFirst(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true, Hold: 100})
	for i, number := range []uint64{3, 2} {
		_, err := arrive(e, start, wsrm.Packet{Number: uint64(i) + 1, Floor: 1, Units: []wsrm.Unit{{Number: number, First: true, Last: true, Payload: make([]byte, 60)}}})
		require.NoError(t, err)
	}
	actions, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	ack := find(t, actions, wsrm.Transmit).Packet.Ack
	assert.Equal(t, []wsrm.Range{{2, 2}}, ack.Ranges)
	assert.Equal(t, []wsrm.Range{{3, 3}}, ack.Nacks)
}

// The other end has all, and is gone when it is told the end: the sequence is complete all the same, and soon over.
func TestFarewellToNobody(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, Inactivity: time.Hour})
	_, err := e.Step(start, wsrm.Event{Kind: wsrm.Close})
	require.NoError(t, err)
	_, err = arrive(e, start, wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Final: true}})
	require.NoError(t, err)
	now, sent := start, 0
	for range 1000 {
		actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			switch a.Kind {
			case wsrm.Transmit:
				assert.True(t, a.Packet.Terminate)
				sent++
			case wsrm.Ended:
				assert.Equal(t, wsrm.Complete, a.Reason)
				assert.Equal(t, 9, sent)
				assert.Less(t, now.Sub(start), 10*time.Minute)
				return
			default:
			}
		}
		now = now.Add(time.Second)
	}
	assert.Fail(t, "it does not end")
}

// A sign of life that is asked for is asked for again until it comes.
func TestAsk(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	_, err := e.Step(start, wsrm.Event{Kind: wsrm.Ask})
	require.NoError(t, err)
	now := start
	for number := range uint64(3) {
		actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		p := find(t, actions, wsrm.Transmit).Packet
		assert.Equal(t, number+1, p.Number)
		assert.True(t, p.Request)
		assert.Empty(t, p.Units)
		now = find(t, actions, wsrm.WakeAt).At
		assert.LessOrEqual(t, now.Sub(start), 10*time.Second)
	}
	_, err = arrive(e, now, wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Echo: 3}})
	require.NoError(t, err)
	actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	for _, a := range actions {
		assert.NotEqual(t, wsrm.Transmit, a.Kind)
	}
	_, err = e.Step(now, wsrm.Event{Kind: wsrm.Close})
	require.NoError(t, err)
	_, err = e.Step(now, wsrm.Event{Kind: wsrm.Ask})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Closed})
}

// A path that is another one: what waited for a timer that had backed off goes on at once, with a window as at the beginning, and a datagram that asks.
func TestMoved(t *testing.T) {
	e := sendOne(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, RTT: time.Second / 2}, 3)
	before := e.Stats().Window
	now := start
	for range 6 {
		now = now.Add(time.Minute)
		_, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
	}
	require.Less(t, e.Stats().Window, before)
	now = now.Add(time.Second)
	_, err := e.Step(now, wsrm.Event{Kind: wsrm.Moved})
	require.NoError(t, err)
	actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	asking := find(t, actions, wsrm.Transmit).Packet
	assert.True(t, asking.Request)
	assert.Equal(t, before, e.Stats().Window)
	assert.Zero(t, e.Stats().RTT)
	now = now.Add(time.Second / 10)
	_, err = arrive(e, now, wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Echo: asking.Number}})
	require.NoError(t, err)
	for range 3 { // an eighth of a round trip later than the echo what went before it is lost
		now = now.Add(time.Second / 20)
		if actions, err = e.Step(now, wsrm.Event{Kind: wsrm.Wake}); len(actions) > 0 && actions[0].Kind == wsrm.Transmit {
			break
		}
		require.NoError(t, err)
	}
	assert.Len(t, find(t, actions, wsrm.Transmit).Packet.Units, 3)
	e = engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	_, err = e.Step(start, wsrm.Event{Kind: wsrm.Abort})
	require.NoError(t, err)
	_, err = e.Step(start, wsrm.Event{Kind: wsrm.Moved})
	assert.NoError(t, err)
}

// The last datagram is lost on a fast link: it is sent again after some round trips, once; the timer, far longer, comes after that.
func TestTailLossProbe(t *testing.T) {
	const rtt = 100 * time.Millisecond
	e := sendOne(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, RTT: rtt}, 3)
	window := e.Stats().Window
	wake := func(now time.Time) []wsrm.Action {
		actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		return actions
	}
	at := start.Add(3*rtt + 25*time.Millisecond)
	for _, a := range wake(at.Add(-time.Millisecond)) {
		require.NotEqual(t, wsrm.Transmit, a.Kind, "too early")
	}
	again := wake(at)
	assert.Len(t, find(t, again, wsrm.Transmit).Packet.Units, 3)
	assert.EqualValues(t, 2, find(t, again, wsrm.Transmit).Packet.Number)
	assert.Equal(t, at.Add(time.Second), find(t, again, wsrm.WakeAt).At, "the timer, from now on")
	assert.Equal(t, int64(1), e.Stats().Probes)
	assert.Equal(t, window, e.Stats().Window)
	_, err := arrive(e, at.Add(rtt), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Done: 3, Echo: 2}})
	require.NoError(t, err)
	assert.Less(t, e.Stats().Window, window, "something was lost")
	assert.Zero(t, e.Stats().Timeouts)

	// Not where the timer fires as soon, and not what may be lost.
	for _, cfg := range []wsrm.Config{{Assurance: wsrm.ExactlyOnce, RTT: time.Second}, {Assurance: wsrm.AtMostOnce, RTT: rtt}, {Assurance: wsrm.ExactlyOnce}} {
		e = sendOne(t, cfg, 1)
		wake(start.Add(time.Minute))
		assert.Zero(t, e.Stats().Probes)
		assert.Equal(t, int64(1), e.Stats().Timeouts)
	}
}
