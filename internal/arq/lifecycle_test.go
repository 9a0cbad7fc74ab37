package arq_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/window"
)

func send(e *arq.Endpoint, message []byte) error {
	_, err := e.Step(start, arq.Event{Kind: arq.Send, Message: message})
	return err
}

func TestWhatIsNotAccepted(t *testing.T) {
	is := func(code window.Code, err error) {
		t.Helper()
		assert.ErrorIs(t, err, &window.Error{Code: code})
	}
	e := engine(t, arq.Config{Window: 64, Hold: 10_000, Datagram: 256})
	is(window.TooLarge, send(e, make([]byte, 10_001)))
	require.NoError(t, send(e, make([]byte, 9_000)))
	is(window.Full, send(e, make([]byte, 1_001)))
	assert.EqualValues(t, 47, e.Last(), "units of 192 bytes")
	for range 17 {
		require.NoError(t, send(e, nil))
	}
	is(window.Full, send(e, nil))
	is(window.TooLarge, send(engine(t, arq.Config{Window: 64, Datagram: 256}), make([]byte, 64*192+1)))

	_, err := e.Step(start, arq.Event{Kind: arq.Close})
	require.NoError(t, err)
	is(window.Closed, send(e, nil))
	_, err = e.Step(start, arq.Event{Kind: arq.Close})
	is(window.Closed, err)
	for _, ev := range []arq.Event{{}, {Kind: arq.Arrived}, {Kind: arq.Committed, Number: 1}, {Kind: 99}} {
		_, err = e.Step(start, ev)
		is(window.Misuse, err)
	}
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	for _, cfg := range []arq.Config{
		{Window: 65}, {Window: 32}, {Window: 1 << 17}, {Hold: -1}, {Hold: 1<<30 +
			1}, {Datagram: 255}, {Datagram: 65001},
		{RTT: -1}, {Inactivity: -1}, {Unanswered: -1},
	} {
		_, err := arq.New(cfg)
		assert.Error(t, err, "%+v", cfg)
	}
	assert.NotEmpty(t, arq.Complete.String())
}

// The retransmission timer, by RFC 6298: 1 s at first, doubled each time, at most 60 s and a
// quarter, for as long as something is heard or inactivity ends it.
func TestTimer(t *testing.T) {
	e := sendOne(t, arq.Config{}, 1)
	now, rto := start, time.Second
	for n := range 12 {
		early, err := e.Step(now.Add(rto-time.Microsecond), arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		for _, a := range early {
			assert.NotEqual(t, arq.Transmit, a.Kind, "the timer is never early")
		}
		now = now.Add(rto)
		if n > 0 {
			now = now.Add(rto / 4)
		}
		actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		p := find(t, actions, arq.Transmit).Packet
		assert.EqualValues(t, n+2, p.Number)
		assert.EqualValues(t, 1, p.Units[0].Number)
		rto = min(2*rto, time.Minute)
	}
	actions, err := e.Step(start.Add(10*time.Minute), arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	assert.Equal(t, arq.Inactive, find(t, actions, arq.Ended).Reason)
}

// A round trip is measured by RFC 6298 rules 2.2 and 2.3.
func TestRoundTrips(t *testing.T) {
	e := sendOne(t, arq.Config{}, 1)
	_, err := arrive(e, start.Add(2*time.Second), window.Packet{HasAck: true, Ack: window.AckPacket{Done: 1, Echo: 1}})
	require.NoError(t, err)
	assert.Equal(t, 2*time.Second, e.Stats().RTT)
	assert.Equal(t, 6*time.Second, e.Stats().RTO)
	now := start.Add(3 * time.Second)
	_, err = e.Step(now, arq.Event{Kind: arq.Send, Message: []byte("m")})
	require.NoError(t, err)
	_, err = e.Step(now, arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	_, err = arrive(e, now.Add(time.Second), window.Packet{HasAck: true, Ack: window.AckPacket{Done: 2, Echo: 2}})
	require.NoError(t, err)
	assert.Equal(t, 1875*time.Millisecond, e.Stats().RTT)
	assert.Equal(t, 1875*time.Millisecond+4*time.Second, e.Stats().RTO)
}

// A time-out that only was too early is undone.
func TestEarlyTimeoutIsUndone(t *testing.T) {
	e := sendOne(t, arq.Config{}, 3)
	cwnd := e.Stats().Window
	_, err := e.Step(start.Add(time.Second), arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	assert.Less(t, e.Stats().Window, cwnd)
	_, err = arrive(
		e,
		start.Add(1500*time.Millisecond),
		window.Packet{HasAck: true, Ack: window.AckPacket{Done: 3, Echo: 1}},
	)
	require.NoError(t, err)
	assert.Equal(t, int64(1), e.Stats().Undone)
	assert.GreaterOrEqual(t, e.Stats().Window, cwnd)
}

// Messages accepted at one moment share datagrams, in both directions with acknowledgements.
func TestMessagesShareDatagrams(t *testing.T) {
	e := engine(t, arq.Config{Datagram: 1472})
	for range 100 {
		require.NoError(t, send(e, make([]byte, 45)))
	}
	_, err := arrive(e, start, window.Packet{Number: 1, Floor: 1, Units: []window.Unit{unit(1, "x")}})
	require.NoError(t, err)
	actions, err := e.Step(start, arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	var units []int
	for _, a := range actions {
		if a.Kind == arq.Transmit {
			units = append(units, len(a.Packet.Units))
			assert.Equal(t, len(units) == 1, a.Packet.HasAck)
			assert.False(t, a.Packet.Request, "there is more to come")
		}
	}
	require.NotEmpty(t, units)
	assert.GreaterOrEqual(t, units[0], 31)
}

// An idle sequence stays, for as long as its ends answer.
func TestIdleSequenceIsKept(t *testing.T) {
	w := newWorld(plan{cfg: arq.Config{Inactivity: time.Minute}, profile: "lte,loss=5%", seed: 1,
		messages: [2]int{0, 0}, sizes: small})
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

// An end that holds less than the other sends refuses by nacks, also when those get lost, and in
// the end has all.
func TestNacks(t *testing.T) {
	for seed := range uint64(20) {
		p := plan{
			cfg: arq.Config{Datagram: 576}, profile: "3g,loss=20%,reorder=5%", seed: seed,
			messages: [2]int{300, 0}, hold: 3000, sizes: func(r *rand.Rand) int { return r.IntN(2000) },
		}
		w := newWorld(p)
		require.True(t, w.run(time.Hour, w.over), "seed %d", seed)
		require.Empty(t, w.fails)
		check(t, w)
	}
}

// A destination that crashed has lost what merely arrived: it is sent again, whatever
// acknowledgements of the life before still say.
func TestCrashTakesBackWhatArrived(t *testing.T) {
	e := sendOne(t, arq.Config{}, 3)
	sent := func(at time.Duration, ack window.AckPacket) (numbers []uint64) {
		t.Helper()
		_, err := arrive(e, start.Add(at), window.Packet{HasAck: true, Ack: ack})
		require.NoError(t, err)
		actions, err := e.Step(start.Add(at), arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == arq.Transmit {
				for _, u := range a.Packet.Units {
					numbers = append(numbers, u.Number)
				}
			}
		}
		return numbers
	}
	assert.Empty(t, sent(100*time.Millisecond, window.AckPacket{Instance: 1, Echo: 1,
		Ranges: []window.Range{{First: 1, Last: 3}}}))
	assert.Equal(t, []uint64{2, 3}, sent(200*time.Millisecond, window.AckPacket{Instance: 2, Done: 1}))
	assert.Empty(t, sent(210*time.Millisecond, window.AckPacket{Instance: 1, Done: 1, Echo: 1,
		Ranges: []window.Range{{First: 2, Last: 3}}}))
	assert.Equal(t, 2, int(e.Stats().Resent))
	_, err := e.Step(start.Add(20*time.Second), arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	assert.Equal(t, 4, int(e.Stats().Resent), "an old life's word does not count")
}

// Two datagrams late is no loss, three are (RFC 5681); and so is a little more than a round trip.
func TestLossIsFoundBeforeTheTimer(t *testing.T) {
	// One message in each datagram, all at once.
	several := func(n int) *arq.Endpoint {
		e := engine(t, arq.Config{Datagram: 256})
		for range n {
			require.NoError(t, send(e, make([]byte, 150)))
		}
		_, err := e.Step(start, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		require.EqualValues(t, n, e.Stats().Sent)
		return e
	}
	wake := func(e *arq.Endpoint, at time.Duration) int64 {
		_, err := e.Step(start.Add(at), arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		return e.Stats().Resent
	}
	const rtt = 100 * time.Millisecond
	for last, resent := range map[uint64]int64{2: 0, 3: 0, 4: 1, 5: 1} {
		e := several(5)
		_, err := arrive(e, start.Add(rtt), window.Packet{HasAck: true,
			Ack: window.AckPacket{Echo: last, Ranges: []window.Range{{First: 2, Last: last}}}})
		require.NoError(t, err)
		assert.Equal(t, resent, wake(e, rtt), "up to %d arrived", last)
		assert.Zero(t, e.Stats().Timeouts)
	}
	e := several(2)
	_, err := arrive(e, start.Add(rtt), window.Packet{HasAck: true,
		Ack: window.AckPacket{Echo: 2, Ranges: []window.Range{{First: 2, Last: 2}}}})
	require.NoError(t, err)
	assert.Zero(t, wake(e, rtt))
	assert.Zero(t, wake(e, rtt+rtt/8-1))
	assert.EqualValues(t, 1, wake(e, rtt+rtt/8))
	assert.Zero(t, e.Stats().Timeouts)
}

// What comes first is needed first: it takes the room of what comes behind, which is asked for
// again.
func TestRoomIsForWhatComesFirst(t *testing.T) {
	e := engine(t, arq.Config{Hold: 100})
	for i, number := range []uint64{3, 2} {
		_, err := arrive(e, start, window.Packet{Number: uint64(i) + 1, Floor: 1,
			Units: []window.Unit{{Number: number, First: true, Last: true, Payload: make([]byte, 60)}}})
		require.NoError(t, err)
	}
	actions, err := e.Step(start, arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	ack := find(t, actions, arq.Transmit).Packet.Ack
	assert.Equal(t, []window.Range{{First: 2, Last: 2}}, ack.Ranges)
	assert.Equal(t, []window.Range{{First: 3, Last: 3}}, ack.Nacks)
}

// The peer has all, and is gone when it is told the end: the sequence is complete all the same, and
// soon over.
func TestEndToNobody(t *testing.T) {
	e := engine(t, arq.Config{Inactivity: time.Hour})
	_, err := e.Step(start, arq.Event{Kind: arq.Close})
	require.NoError(t, err)
	_, err = arrive(e, start, window.Packet{HasAck: true, Ack: window.AckPacket{Final: true}})
	require.NoError(t, err)
	now, sent := start, 0
	for range 1000 {
		actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			switch a.Kind {
			case arq.Transmit:
				assert.True(t, a.Packet.Terminate)
				sent++
			case arq.Ended:
				assert.Equal(t, arq.Complete, a.Reason)
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
	e := engine(t, arq.Config{})
	_, err := e.Step(start, arq.Event{Kind: arq.Ask})
	require.NoError(t, err)
	now := start
	for number := range uint64(3) {
		actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		p := find(t, actions, arq.Transmit).Packet
		assert.Equal(t, number+1, p.Number)
		assert.True(t, p.Request)
		assert.Empty(t, p.Units)
		now = find(t, actions, arq.WakeAt).At
		assert.LessOrEqual(t, now.Sub(start), 10*time.Second)
	}
	_, err = arrive(e, now, window.Packet{HasAck: true, Ack: window.AckPacket{Echo: 3}})
	require.NoError(t, err)
	actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	for _, a := range actions {
		assert.NotEqual(t, arq.Transmit, a.Kind)
	}
	_, err = e.Step(now, arq.Event{Kind: arq.Close})
	require.NoError(t, err)
	_, err = e.Step(now, arq.Event{Kind: arq.Ask})
	assert.ErrorIs(t, err, &window.Error{Code: window.Closed})
}

// A path that is another one: what waited for a timer that had backed off goes on at once, with a
// window as at the beginning, and a datagram that asks.
func TestMoved(t *testing.T) {
	e := sendOne(t, arq.Config{RTT: time.Second / 2}, 3)
	before := e.Stats().Window
	now := start
	for range 6 {
		now = now.Add(time.Minute)
		_, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
	}
	require.Less(t, e.Stats().Window, before)
	now = now.Add(time.Second)
	_, err := e.Step(now, arq.Event{Kind: arq.Moved})
	require.NoError(t, err)
	actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	asking := find(t, actions, arq.Transmit).Packet
	assert.True(t, asking.Request)
	assert.Equal(t, before, e.Stats().Window)
	assert.Zero(t, e.Stats().RTT)
	now = now.Add(time.Second / 10)
	_, err = arrive(e, now, window.Packet{HasAck: true, Ack: window.AckPacket{Echo: asking.Number}})
	require.NoError(t, err)
	for range 3 { // an eighth of a round trip later than the echo what went before it is lost
		now = now.Add(time.Second / 20)
		if actions, err = e.Step(now, arq.Event{Kind: arq.Wake}); len(actions) > 0 && actions[0].Kind == arq.Transmit {
			break
		}
		require.NoError(t, err)
	}
	assert.Len(t, find(t, actions, arq.Transmit).Packet.Units, 3)
	e = engine(t, arq.Config{})
	_, err = arrive(e, start, window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}})
	require.NoError(t, err)
	_, err = e.Step(start, arq.Event{Kind: arq.Moved})
	assert.NoError(t, err)
}

// The last datagram is lost on a fast link: it is sent again after some round trips, once; the
// timer, far longer, comes after that.
func TestTailLossProbe(t *testing.T) {
	const rtt = 100 * time.Millisecond
	e := sendOne(t, arq.Config{RTT: rtt}, 3)
	cwnd := e.Stats().Window
	wake := func(now time.Time) []arq.Instruction {
		actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		return actions
	}
	at := start.Add(3*rtt + 25*time.Millisecond)
	for _, a := range wake(at.Add(-time.Millisecond)) {
		require.NotEqual(t, arq.Transmit, a.Kind, "too early")
	}
	again := wake(at)
	assert.Len(t, find(t, again, arq.Transmit).Packet.Units, 3)
	assert.EqualValues(t, 2, find(t, again, arq.Transmit).Packet.Number)
	assert.Equal(t, at.Add(time.Second), find(t, again, arq.WakeAt).At, "the timer, from now on")
	assert.Equal(t, int64(1), e.Stats().Probes)
	assert.Equal(t, cwnd, e.Stats().Window)
	_, err := arrive(e, at.Add(rtt), window.Packet{HasAck: true, Ack: window.AckPacket{Done: 3, Echo: 2}})
	require.NoError(t, err)
	assert.Less(t, e.Stats().Window, cwnd, "something was lost")
	assert.Zero(t, e.Stats().Timeouts)

	// Not where the timer fires as soon.
	for _, cfg := range []arq.Config{{RTT: time.Second}, {}} {
		e = sendOne(t, cfg, 1)
		wake(start.Add(time.Minute))
		assert.Zero(t, e.Stats().Probes)
		assert.Equal(t, int64(1), e.Stats().Timeouts)
	}
}
