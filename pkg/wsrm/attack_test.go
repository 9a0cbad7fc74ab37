package wsrm_test

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

func engine(t testing.TB, cfg wsrm.Config) *wsrm.Engine {
	t.Helper()
	e, err := wsrm.New(cfg)
	require.NoError(t, err)
	return e
}

// unit is a whole message.
func unit(number uint64, payload string) wsrm.Unit {
	return wsrm.Unit{Number: number, First: true, Last: true, Payload: []byte(payload)}
}

func arrive(e *wsrm.Engine, now time.Time, p wsrm.Packet) ([]wsrm.Action, error) {
	return e.Step(now, wsrm.Event{Kind: wsrm.Arrived, Packet: &p})
}

// sendOne gives an engine that sent one datagram with n messages.
func sendOne(t testing.TB, cfg wsrm.Config, n int) *wsrm.Engine {
	t.Helper()
	e := engine(t, cfg)
	for range n {
		_, err := e.Step(start, wsrm.Event{Kind: wsrm.Send, Message: []byte("m")})
		require.NoError(t, err)
	}
	actions, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
	require.NoError(t, err)
	require.Len(t, find(t, actions, wsrm.Transmit).Packet.Units, n)
	return e
}

// An acknowledgement of what was never sent, however long its ranges, is refused at once and changes nothing.
func TestAcknowledgementsOfWhatWasNeverSent(t *testing.T) {
	for name, ack := range map[string]wsrm.Ack{
		"done":            {Done: 11, Echo: 1},
		"done by far":     {Done: 1 << 62, Echo: 1},
		"range":           {Echo: 1, Ranges: []wsrm.Range{{2, 11}}},
		"billions":        {Echo: 1, Ranges: []wsrm.Range{{2, 1_000_000_000}, {1_000_000_002, math.MaxInt64}}},
		"nacks":           {Echo: 1, Nacks: []wsrm.Range{{2, 1_000_000_000}}},
		"echo":            {Done: 1, Echo: 2},
		"ranges fall":     {Echo: 1, Ranges: []wsrm.Range{{5, 6}, {3, 4}}},
		"ranges overlap":  {Echo: 1, Ranges: []wsrm.Range{{3, 6}, {6, 8}}},
		"range is empty":  {Echo: 1, Ranges: []wsrm.Range{{4, 3}}},
		"range below":     {Done: 5, Echo: 1, Ranges: []wsrm.Range{{5, 6}}},
		"and is not news": {Instance: 9, Done: 11, Unknown: true},
	} {
		for _, assurance := range []wsrm.Assurance{wsrm.AtMostOnce, wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
			e := sendOne(t, wsrm.Config{Assurance: assurance}, 10)
			before := e.Stats()
			actions, err := arrive(e, start.Add(time.Second/2), wsrm.Packet{HasAck: true, Ack: ack})
			assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Invalid}, name)
			assert.Empty(t, actions, name)
			before.Refused++
			assert.Equal(t, before, e.Stats(), name)
			actions, err = arrive(e, start.Add(time.Second/2), wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Done: 10, Echo: 1}})
			require.NoError(t, err)
			assert.EqualValues(t, 10, find(t, actions, wsrm.Acknowledged).Number)
		}
	}
}

// Numbers no honest source uses now: none reaches the application or the window.
func TestNumbersOutOfPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		packet wsrm.Packet
		code   wsrm.Code
	}{
		"beyond the window":      {wsrm.Packet{Number: 1, Floor: 1, Units: []wsrm.Unit{unit(1, "a"), unit(65, "b")}}, wsrm.Invalid},
		"far beyond":             {wsrm.Packet{Number: 1, Floor: 1, Units: []wsrm.Unit{unit(math.MaxInt64, "b")}}, wsrm.Invalid},
		"a floor out of nothing": {wsrm.Packet{Number: 1, Floor: math.MaxInt64, Units: []wsrm.Unit{unit(math.MaxInt64, "b")}}, wsrm.UnknownSequence},
		"above the last":         {wsrm.Packet{Number: 1, Floor: 1, Closing: true, Last: 1, Units: []wsrm.Unit{unit(1, "a"), unit(2, "b")}}, wsrm.LastMessageExceeded},
	} {
		e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, Window: 64})
		actions, err := arrive(e, start, tc.packet)
		assert.ErrorIs(t, err, &wsrm.Error{Code: tc.code}, name)
		for _, a := range actions {
			assert.Equal(t, wsrm.WakeAt, a.Kind, name)
		}
		actions, err = arrive(e, start, wsrm.Packet{Number: 1, Floor: 1, Units: []wsrm.Unit{unit(1, "a")}})
		require.NoError(t, err)
		assert.EqualValues(t, 1, find(t, actions, wsrm.Deliver).Number, name)
	}
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	_, err := arrive(e, start, wsrm.Packet{Number: 1, Floor: 1, Closing: true, Last: 5, Units: []wsrm.Unit{unit(1, "a")}})
	require.NoError(t, err)
	for _, last := range []uint64{4, 6} {
		_, err = arrive(e, start, wsrm.Packet{Number: 2, Floor: 1, Closing: true, Last: last})
		assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.LastMessageExceeded}, "the last number is said once")
	}
	_, err = arrive(e, start, wsrm.Packet{Number: 3, Floor: 1, Units: []wsrm.Unit{unit(6, "a")}})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.LastMessageExceeded})
}

// The window slides under at-most-once, up to the last number there is, and never delivers twice.
func TestNumbersNearTheLimit(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.AtMostOnce, Window: 64})
	const top = 1<<64 - 1<<20 - 64
	count := 0
	for _, number := range []uint64{1, math.MaxInt64, math.MaxInt64 + 1, math.MaxInt64, math.MaxInt64 - 64, top, top - 1, top, top - 64, 5} {
		actions, err := arrive(e, start, wsrm.Packet{Number: 1, Floor: 1, Units: []wsrm.Unit{unit(number, "x")}})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == wsrm.Deliver {
				count++
			}
		}
	}
	assert.Equal(t, 5, count)
	_, err := arrive(e, start, wsrm.Packet{Number: 1, Floor: 1, Units: []wsrm.Unit{unit(top+1, "x")}})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Invalid})
}

// A whole sequence heard by somebody and sent again later: nothing is delivered, and each datagram gets at most one answer.
func TestReplayedSequence(t *testing.T) {
	for _, assurance := range []wsrm.Assurance{wsrm.AtMostOnce, wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
		p := plan{cfg: wsrm.Config{Assurance: assurance}, profile: "lte,loss=5%", seed: 3, messages: [2]int{300, 0}, sizes: small}
		w := newWorld(p)
		var heard [][]byte
		w.mangle = func(_ *world, from int, datagram []byte) {
			if from == 0 {
				heard = append(heard, datagram)
			}
		}
		require.True(t, w.run(time.Hour, w.over))
		e := w.ends[1]
		log, sent := len(e.log), w.packets[1]
		for _, datagram := range heard {
			e.receive(datagram)
			w.now = w.now.Add(time.Second)
			e.settle()
		}
		assert.Empty(t, w.fails)
		assert.Len(t, e.log, log, "%v", assurance)
		assert.LessOrEqual(t, w.packets[1]-sent, len(heard))
	}
}

// A message whose parts never become whole, at the full length of the window, forever: the destination holds what it may, and ends when the source falls silent.
func TestSequenceNeverTerminated(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: ordered, Hold: 100_000, Window: 1024, Inactivity: time.Minute}
		e := engine(t, cfg)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		now := start
		part := make([]byte, 1000)
		for n := uint64(1); n < 20_000; n++ {
			now = now.Add(time.Millisecond)
			// All but the first of a message.
			_, err := arrive(e, now, wsrm.Packet{Number: n, Floor: 1, Units: []wsrm.Unit{{Number: 2 + n%1000, Payload: part}}})
			require.NoError(t, err)
			actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
			require.NoError(t, err)
			for _, a := range actions {
				assert.NotEqual(t, wsrm.Deliver, a.Kind)
				if a.Kind == wsrm.Transmit {
					assert.LessOrEqual(t, len(a.Packet.Ack.Ranges)+len(a.Packet.Ack.Nacks), 64)
				}
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1_000_000), "octets kept")
		assert.Less(t, len(e.AppendState(nil)), 20_000)
		actions, err := e.Step(now.Add(time.Hour), wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		var ended []bool
		for _, a := range actions {
			if a.Kind == wsrm.Ended {
				assert.Equal(t, wsrm.Inactive, a.Reason)
				ended = append(ended, a.Remote)
			}
		}
		assert.ElementsMatch(t, []bool{false, true}, ended)
		assert.True(t, e.Over())
	}
}

// An end that sends nothing of its own sends no more datagrams than it gets, whatever they are.
func TestNoMoreAnswersThanQuestions(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	got, sent := 0, 0
	now := start
	for n := uint64(1); n < 500; n++ {
		now = now.Add(10 * time.Millisecond)
		p := wsrm.Packet{Number: n, Floor: 1 + n%3, Request: true, Units: []wsrm.Unit{unit(1+n%7*2, "x")}}
		got += len(e.Codec().Append(nil, &p))
		_, _ = arrive(e, now, p) // floors that it cannot know are refused, and answered
		actions, err := e.Step(now, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == wsrm.Transmit {
				sent += len(e.Codec().Append(nil, a.Packet))
			}
		}
	}
	assert.Positive(t, sent)
	assert.Less(t, sent, 3*got)
}

// The other end says that it knows nothing of the sequence: what was sent has an unknown fate, what was not is unsent.
func TestUnknownToTheOtherEnd(t *testing.T) {
	e := sendOne(t, wsrm.Config{Assurance: wsrm.ExactlyOnce}, 3)
	_, err := e.Step(start, wsrm.Event{Kind: wsrm.Send, Message: []byte("late")})
	require.NoError(t, err)
	actions, err := arrive(e, start, wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Unknown: true}})
	require.NoError(t, err)
	unknown, unsent, ended := find(t, actions, wsrm.Unknown), find(t, actions, wsrm.Unsent), find(t, actions, wsrm.Ended)
	assert.Equal(t, []uint64{1, 3, 4, 1}, []uint64{unknown.Number, unknown.Count, unsent.Number, unsent.Count})
	assert.Equal(t, wsrm.Unrecognized, ended.Reason)
	_, err = e.Step(start, wsrm.Event{Kind: wsrm.Send, Message: []byte("later")})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Closed})
}
