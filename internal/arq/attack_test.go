package arq_test

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/window"
)

func engine(t testing.TB, cfg arq.Config) *arq.Endpoint {
	t.Helper()
	e, err := arq.New(cfg)
	require.NoError(t, err)
	return e
}

// unit is a whole message.
func unit(number uint64, payload string) window.Unit {
	return window.Unit{Number: number, First: true, Last: true, Payload: []byte(payload)}
}

func arrive(e *arq.Endpoint, now time.Time, p window.Packet) ([]arq.Instruction, error) {
	return e.Step(now, arq.Event{Kind: arq.Arrived, Packet: &p})
}

// sendOne gives an engine that sent one datagram with n messages.
func sendOne(t testing.TB, cfg arq.Config, n int) *arq.Endpoint {
	t.Helper()
	e := engine(t, cfg)
	for range n {
		_, err := e.Step(start, arq.Event{Kind: arq.Send, Message: []byte("m")})
		require.NoError(t, err)
	}
	actions, err := e.Step(start, arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	require.Len(t, find(t, actions, arq.Transmit).Packet.Units, n)
	return e
}

// An acknowledgement of what was never sent, however long its ranges, is refused at once and
// changes nothing.
func TestAcknowledgementsOfWhatWasNeverSent(t *testing.T) {
	for name, ack := range map[string]window.AckPacket{
		"done":        {Done: 11, Echo: 1},
		"done by far": {Done: 1 << 62, Echo: 1},
		"range":       {Echo: 1, Ranges: []window.Range{{First: 2, Last: 11}}},
		"billions": {Echo: 1, Ranges: []window.Range{{First: 2, Last: 1_000_000_000},
			{First: 1_000_000_002, Last: math.MaxInt64}}},
		"nacks":           {Echo: 1, Nacks: []window.Range{{First: 2, Last: 1_000_000_000}}},
		"echo":            {Done: 1, Echo: 2},
		"ranges fall":     {Echo: 1, Ranges: []window.Range{{First: 5, Last: 6}, {First: 3, Last: 4}}},
		"ranges overlap":  {Echo: 1, Ranges: []window.Range{{First: 3, Last: 6}, {First: 6, Last: 8}}},
		"range is empty":  {Echo: 1, Ranges: []window.Range{{First: 4, Last: 3}}},
		"range below":     {Done: 5, Echo: 1, Ranges: []window.Range{{First: 5, Last: 6}}},
		"and is not news": {Instance: 9, Done: 11, Unknown: true},
	} {
		e := sendOne(t, arq.Config{}, 10)
		before := e.Stats()
		actions, err := arrive(e, start.Add(time.Second/2), window.Packet{HasAck: true, Ack: ack})
		assert.ErrorIs(t, err, &window.Error{Code: window.Invalid}, name)
		assert.Empty(t, actions, name)
		before.Refused++
		assert.Equal(t, before, e.Stats(), name)
		all := window.Packet{HasAck: true, Ack: window.AckPacket{Done: 10, Echo: 1}}
		actions, err = arrive(e, start.Add(time.Second/2), all)
		require.NoError(t, err)
		assert.EqualValues(t, 10, find(t, actions, arq.Acknowledged).Number)
	}
}

// Numbers no honest source uses now: none reaches the application or the window.
func TestNumbersOutOfPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		packet window.Packet
		code   window.Code
	}{
		"beyond the window": {window.Packet{Number: 1, Floor: 1,
			Units: []window.Unit{unit(1, "a"), unit(65, "b")}}, window.Invalid},
		"far beyond": {window.Packet{Number: 1, Floor: 1, Units: []window.Unit{unit(math.MaxInt64, "b")}},
			window.Invalid},
		"a floor out of nothing": {window.Packet{Number: 1, Floor: math.MaxInt64,
			Units: []window.Unit{unit(math.MaxInt64, "b")}}, window.UnknownSequence},
		"above the last": {window.Packet{Number: 1, Floor: 1, Closing: true, Last: 1,
			Units: []window.Unit{unit(1, "a"), unit(2, "b")}}, window.LastMessageExceeded},
	} {
		e := engine(t, arq.Config{Window: 64})
		actions, err := arrive(e, start, tc.packet)
		assert.ErrorIs(t, err, &window.Error{Code: tc.code}, name)
		for _, a := range actions {
			assert.Equal(t, arq.WakeAt, a.Kind, name)
		}
		actions, err = arrive(e, start, window.Packet{Number: 1, Floor: 1, Units: []window.Unit{unit(1, "a")}})
		require.NoError(t, err)
		assert.EqualValues(t, 1, find(t, actions, arq.Deliver).Number, name)
	}
	e := engine(t, arq.Config{})
	_, err := arrive(e, start, window.Packet{Number: 1, Floor: 1, Closing: true, Last: 5,
		Units: []window.Unit{unit(1, "a")}})
	require.NoError(t, err)
	for _, last := range []uint64{4, 6} {
		_, err = arrive(e, start, window.Packet{Number: 2, Floor: 1, Closing: true, Last: last})
		assert.ErrorIs(t, err, &window.Error{Code: window.LastMessageExceeded}, "the last number is said once")
	}
	_, err = arrive(e, start, window.Packet{Number: 3, Floor: 1, Units: []window.Unit{unit(6, "a")}})
	assert.ErrorIs(t, err, &window.Error{Code: window.LastMessageExceeded})
}

// A whole sequence heard by somebody and sent again later: nothing is delivered, and each datagram
// gets at most one answer.
func TestReplayedSequence(t *testing.T) {
	w := newWorld(plan{profile: "lte,loss=5%", seed: 3, messages: [2]int{300, 0}, sizes: small})
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
		w.Now = w.Now.Add(time.Second)
		e.settle()
	}
	assert.Empty(t, w.fails)
	assert.Len(t, e.log, log)
	assert.LessOrEqual(t, w.packets[1]-sent, len(heard))
}

// A message whose parts never become whole, at the full length of the window, forever: the
// destination holds what it may, and ends when the source falls silent.
func TestSequenceNeverTerminated(t *testing.T) {
	cfg := arq.Config{Hold: 100_000, Window: 1024, Inactivity: time.Minute}
	e := engine(t, cfg)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	now := start
	part := make([]byte, 1000)
	for n := uint64(1); n < 20_000; n++ {
		now = now.Add(time.Millisecond)
		// All but the first of a message.
		_, err := arrive(e, now, window.Packet{Number: n, Floor: 1,
			Units: []window.Unit{{Number: 2 + n%1000, Payload: part}}})
		require.NoError(t, err)
		actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			assert.NotEqual(t, arq.Deliver, a.Kind)
			if a.Kind == arq.Transmit {
				assert.LessOrEqual(t, len(a.Packet.Ack.Ranges)+len(a.Packet.Ack.Nacks), 64)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1_000_000), "bytes kept")
	actions, err := e.Step(now.Add(time.Hour), arq.Event{Kind: arq.Wake})
	require.NoError(t, err)
	var ended []bool
	for _, a := range actions {
		if a.Kind == arq.Ended {
			assert.Equal(t, arq.Inactive, a.Reason)
			ended = append(ended, a.Remote)
		}
	}
	assert.ElementsMatch(t, []bool{false, true}, ended)
	assert.True(t, e.Over())
}

// An end that sends nothing of its own sends no more datagrams than it gets, whatever they are.
func TestNoMoreAnswersThanQuestions(t *testing.T) {
	e := engine(t, arq.Config{})
	got, sent := 0, 0
	now := start
	for n := uint64(1); n < 500; n++ {
		now = now.Add(10 * time.Millisecond)
		p := window.Packet{Number: n, Floor: 1 + n%3, Request: true, Units: []window.Unit{unit(1+n%7*2, "x")}}
		got += len(p.Append(nil))
		_, _ = arrive(e, now, p) // floors that it cannot know are refused, and answered
		actions, err := e.Step(now, arq.Event{Kind: arq.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == arq.Transmit {
				sent += len(a.Packet.Append(nil))
			}
		}
	}
	assert.Positive(t, sent)
	assert.Less(t, sent, 3*got)
}

// The peer says that it knows nothing of the sequence: it is over, and takes nothing more.
func TestUnknownToThePeer(t *testing.T) {
	e := sendOne(t, arq.Config{}, 3)
	_, err := e.Step(start, arq.Event{Kind: arq.Send, Message: []byte("late")})
	require.NoError(t, err)
	actions, err := arrive(e, start, window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}})
	require.NoError(t, err)
	assert.Equal(t, arq.Unrecognized, find(t, actions, arq.Ended).Reason)
	assert.Zero(t, e.Stats().Flight)
	_, err = e.Step(start, arq.Event{Kind: arq.Send, Message: []byte("later")})
	assert.ErrorIs(t, err, &window.Error{Code: window.Closed})
}

func find(t testing.TB, actions []arq.Instruction, kind arq.InstructionKind) arq.Instruction {
	t.Helper()
	for _, a := range actions {
		if a.Kind == kind {
			return a
		}
	}
	require.Failf(t, "no such action", "kind %d in %+v", kind, actions)
	return arq.Instruction{}
}
