package wsrm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// What is sent once on a carrier is not sent again before the next one, however long that takes.
func TestSentOncePerCarrier(t *testing.T) {
	m := machine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	require.NoError(t, send(m, make([]byte, 100_000)))
	sent := func(after time.Duration, kind wsrm.EventKind) int {
		return len(kinds(step(t, m, start.Add(after), wsrm.Event{Kind: kind}), wsrm.Transmit))
	}
	assert.Zero(t, sent(0, wsrm.Wake), "there is no carrier")
	assert.Zero(t, sent(0, wsrm.Connected))
	assert.Equal(t, 1, sent(0, wsrm.Wake))
	assert.Zero(t, sent(24*time.Hour, wsrm.Wake), "nothing is lost on a carrier")
	assert.False(t, m.Over(), "nor given up")
	assert.Zero(t, sent(25*time.Hour, wsrm.Disconnected))
	assert.Zero(t, sent(26*time.Hour, wsrm.Wake))
	assert.Zero(t, sent(27*time.Hour, wsrm.Connected))
	assert.Equal(t, 1, sent(27*time.Hour, wsrm.Wake))
	assert.EqualValues(t, 1, m.Resent())
}

// What cannot happen is refused, and says which rule it breaks.
func TestRefused(t *testing.T) {
	is := func(code window.Code, err error) {
		t.Helper()
		assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Refused})
		assert.ErrorIs(t, err, &window.Error{Code: code})
	}
	cfg := wsrm.Config{Assurance: wsrm.AtLeastOnce, Window: 64, Hold: 10_000}
	m := machine(t, cfg)
	is(window.TooLarge, send(m, make([]byte, 10_001)))
	require.NoError(t, send(m, make([]byte, 9_000)))
	assert.ErrorIs(t, send(m, make([]byte, 1_001)), &wsrm.Error{Code: wsrm.Full})
	for range 63 {
		require.NoError(t, send(m, nil))
	}
	assert.ErrorIs(t, send(m, nil), &wsrm.Error{Code: wsrm.Full})
	step(t, m, start, wsrm.Event{Kind: wsrm.Close})
	is(window.Closed, send(m, nil))
	for code, events := range map[window.Code][]wsrm.Event{
		window.Closed: {{Kind: wsrm.Close}},
		window.Misuse: {{}, {Kind: wsrm.Committed, Number: 1}, {Kind: 99}},
		window.Invalid: {
			arrived(65, "beyond the window"),
			heard(window.Packet{HasAck: true, Ack: window.AckPacket{Done: 1}}),
		},
		window.Malformed: {{Kind: wsrm.Heard}, {Kind: wsrm.Heard, Message: []byte{0}}},
	} {
		for _, ev := range events {
			_, err := m.Step(start, ev)
			is(code, err)
		}
	}
	unit := window.Unit{Number: 1, First: true, Last: true}
	_, err := m.Step(start, heard(window.Packet{Number: 1, Floor: 1, Units: []window.Unit{unit}}))
	assert.ErrorContains(t, err, "messages beside an acknowledgement")
	_, err = m.Begin(start, 1)
	is(window.Misuse, err)

	for _, change := range []func(*wsrm.Config){
		func(c *wsrm.Config) { c.Assurance = 0 }, func(c *wsrm.Config) { c.Assurance = 4 },
		func(c *wsrm.Config) { c.Assurance = wsrm.AtMostOnce }, func(c *wsrm.Config) { c.Window = 65 },
		func(c *wsrm.Config) { c.Window = 32 }, func(c *wsrm.Config) { c.Hold = -1 },
		func(c *wsrm.Config) { c.AckDelay = -1 },
	} {
		bad := cfg
		change(&bad)
		_, err := wsrm.NewMachine(bad)
		assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadConfig}, "%+v", bad)
	}
}

// A source that closed and died before all was done is open again in its next life; what it said of
// the end counts no more, in whatever order it comes.
func TestCarriedCloseIsTakenBack(t *testing.T) {
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce}
	// says is what an engine says on a new carrier.
	says := func(m *wsrm.Machine) (events []wsrm.Event, closing []bool) {
		step(t, m, start, wsrm.Event{Kind: wsrm.Connected})
		for _, a := range kinds(step(t, m, start, wsrm.Event{Kind: wsrm.Wake}), wsrm.Say) {
			p := said(t, a)
			events, closing = append(events, heard(p)), append(closing, p.Closing)
		}
		return events, closing
	}
	first := machine(t, cfg)
	require.NoError(t, send(first, []byte("a")))
	step(t, first, start, wsrm.Event{Kind: wsrm.Close})
	assert.True(t, first.Closed())
	require.Error(t, send(first, []byte("b")))
	old, closing := says(first)
	require.Equal(t, []bool{true}, closing)

	second, err := wsrm.RestoreMachine(cfg, first.AppendState(nil))
	require.NoError(t, err)
	assert.False(t, second.Closed())
	require.NoError(t, send(second, []byte("b")))
	anew, closing := says(second)
	require.Equal(t, []bool{false}, closing)
	step(t, second, start, wsrm.Event{Kind: wsrm.Close})
	last, closing := says(second)
	require.Equal(t, []bool{true}, closing)

	a, b := arrived(1, "a"), arrived(2, "b")
	for name, events := range map[string][]wsrm.Event{
		"as said":                     {old[0], a, anew[0], b, last[0]},
		"the message first":           {old[0], a, b, anew[0], last[0]},
		"the old end late":            {a, anew[0], old[0], b, last[0]},
		"the old end behind the last": {a, b, last[0], old[0]},
		"only the ends":               {old[0], last[0], a, b},
	} {
		there := machine(t, cfg)
		for i, ev := range events {
			_, err := there.Step(start, ev)
			require.NoError(t, err, "%s: %d", name, i)
			assert.False(t, there.Complete(), "%s: %d", name, i)
		}
		for n := range uint64(2) {
			step(t, there, start, wsrm.Event{Kind: wsrm.Committed, Number: n + 1})
		}
		assert.True(t, there.Complete(), name)
	}
}

// At-most-once is done with what the end of a carrier leaves under way: it is told, never sent
// again, and the floor tells the peer, which passes over it, and over what it delivered and has not
// committed.
func TestAtMostOnce(t *testing.T) {
	cfg := wsrm.Config{Assurance: wsrm.AtMostOnce, Ordered: true, Window: 64}
	m, peer := machine(t, cfg), machine(t, cfg)
	arrive := func(ev wsrm.Event) []wsrm.Action { return kinds(step(t, peer, start, ev), wsrm.Deliver) }
	for _, each := range []*wsrm.Machine{m, peer} {
		step(t, each, start, wsrm.Event{Kind: wsrm.Connected})
	}
	for _, text := range []string{"one", "two", "three"} {
		require.NoError(t, send(m, []byte(text)))
	}
	step(t, m, start, wsrm.Event{Kind: wsrm.Wake})
	require.Len(t, arrive(arrived(1, "one")), 1)

	lost := kinds(step(t, m, start, wsrm.Event{Kind: wsrm.Disconnected}), wsrm.Lost)
	require.Len(t, lost, 1)
	assert.EqualValues(t, 1, lost[0].Number)
	assert.EqualValues(t, 3, lost[0].Count)
	require.NoError(t, send(m, []byte("four")))
	step(t, m, start, wsrm.Event{Kind: wsrm.Connected})
	actions := step(t, m, start, wsrm.Event{Kind: wsrm.Wake})
	assert.Empty(t, arrive(arrived(4, "four")), "its turn has not come")
	floor := said(t, find(t, actions, wsrm.Say))
	assert.EqualValues(t, 4, floor.Floor)
	four := arrive(heard(floor))
	require.Len(t, four, 1, "the floor gives it its turn")
	assert.EqualValues(t, 4, four[0].Number)
	sent := kinds(actions, wsrm.Transmit)
	require.Len(t, sent, 1)
	assert.EqualValues(t, 4, sent[0].Number)
	assert.Zero(t, m.Resent())
	assert.Empty(t, arrive(arrived(2, "two")), "late, from the carrier before")
	_, err := peer.Step(start, wsrm.Event{Kind: wsrm.Committed, Number: 1})
	assert.ErrorIs(t, err, &window.Error{Code: window.Misuse}, "it was given up")
	step(t, peer, start, wsrm.Event{Kind: wsrm.Committed, Number: 4})
	_, _, received := peer.Positions()
	assert.EqualValues(t, 4, received)
	assert.EqualValues(t, 3, peer.GivenUp())
}

// What at-most-once gives up ends where the carrier says that it was handed nothing any more; a
// carrier that another one follows is gone, whether or not anybody said so.
func TestGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		ev        wsrm.Event
		lost      uint64 // from the third message on, which is the first that is not done
		sentAgain []uint64
	}{
		"all":                       {wsrm.Event{Kind: wsrm.Disconnected}, 3, nil},
		"nobody said so":            {wsrm.Event{Kind: wsrm.Connected}, 3, nil},
		"what the carrier had":      {wsrm.Event{Kind: wsrm.Disconnected, Number: 5}, 2, []uint64{5}},
		"the carrier had nothing":   {wsrm.Event{Kind: wsrm.Disconnected, Number: 1}, 0, []uint64{3, 4, 5}},
		"more than was transmitted": {wsrm.Event{Kind: wsrm.Disconnected, Number: 9}, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t, wsrm.Config{Assurance: wsrm.AtMostOnce, Ordered: true, Window: 64, Hold: 50})
			step(t, m, start, wsrm.Event{Kind: wsrm.Connected})
			for range 5 {
				require.NoError(t, send(m, make([]byte, 10)))
			}
			step(t, m, start, wsrm.Event{Kind: wsrm.Wake})
			step(t, m, start, heard(window.Packet{HasAck: true, Ack: window.AckPacket{Done: 2, Echo: 1}}))

			lost := kinds(step(t, m, start, c.ev), wsrm.Lost)
			if c.lost == 0 {
				assert.Empty(t, lost)
			} else {
				require.Len(t, lost, 1)
				assert.EqualValues(t, 3, lost[0].Number)
				assert.Equal(t, c.lost, lost[0].Count)
			}
			require.NoError(t, send(m, make([]byte, 50-10*len(c.sentAgain))), "what was given up makes room")
			step(t, m, start, wsrm.Event{Kind: wsrm.Connected})
			actions := step(t, m, start, wsrm.Event{Kind: wsrm.Wake})
			assert.Equal(t, 3+c.lost, said(t, find(t, actions, wsrm.Say)).Floor)
			var sent []uint64
			for _, a := range kinds(actions, wsrm.Transmit) {
				sent = append(sent, a.Number)
			}
			assert.Equal(t, append(c.sentAgain, 6), sent)
			assert.Zero(t, m.Resent())
			assert.EqualValues(t, c.lost, m.GivenUp())
		})
	}
}

// The peer says that it knows nothing of the sequence: what was sent has an unknown fate, what was
// not is unsent. An end that gives up itself says so, too, and is over when the peer knows.
func TestEndsBeforeItsTime(t *testing.T) {
	for _, ev := range []wsrm.Event{
		heard(window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}}), {Kind: wsrm.Abort},
	} {
		m := machine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
		step(t, m, start, wsrm.Event{Kind: wsrm.Connected})
		for range 3 {
			require.NoError(t, send(m, []byte("m")))
		}
		step(t, m, start, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, send(m, []byte("late")))
		actions := step(t, m, start, ev)
		unknown, unsent := find(t, actions, wsrm.Unknown), find(t, actions, wsrm.Unsent)
		got := []uint64{unknown.Number, unknown.Count, unsent.Number, unsent.Count}
		assert.Equal(t, []uint64{1, 3, 4, 1}, got)
		assert.ErrorIs(t, send(m, []byte("later")), &window.Error{Code: window.Closed})
		if ev.Kind != wsrm.Abort {
			assert.Equal(t, wsrm.Unrecognized, find(t, actions, wsrm.Ended).Reason)
			continue
		}
		assert.Empty(t, kinds(actions, wsrm.Ended))
		assert.True(t, said(t, find(t, step(t, m, start, wsrm.Event{Kind: wsrm.Wake}), wsrm.Say)).Terminate)
		actions = step(t, m, start, heard(window.Packet{HasAck: true, Ack: window.AckPacket{Terminated: true}}))
		assert.Equal(t, wsrm.Aborted, find(t, actions, wsrm.Ended).Reason)
	}
}
