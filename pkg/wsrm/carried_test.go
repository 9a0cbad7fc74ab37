package wsrm_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// carrier is the connection of a world whose ends have one: what it brings comes in order, until it is cut.
type carrier struct {
	up     bool
	number int
	next   [2]time.Time // nothing of this direction arrives before
	units  [2]uint64    // the last unit of this direction that arrived; 0: none did
}

// untaken is from where on a connection that is cut can say that it was handed nothing of a direction; 0: it cannot.
func (w *world) untaken(from int) uint64 {
	if w.rand.IntN(2) == 0 {
		return 0
	}
	return w.carrier.units[from] + 1 + w.rand.Uint64N(8)
}

// cut ends the connection; what is under way is lost.
func (w *world) cut() {
	if !w.carrier.up {
		return
	}
	w.carrier.up = false
	w.carrier.number++
	for _, e := range w.ends {
		if e.engine != nil {
			if err := e.step(wsrm.Event{Kind: wsrm.Disconnected, Number: w.untaken(e.index)}); err != nil {
				w.failf("end %d: %v", e.index, err)
			}
		}
	}
	w.after(time.Duration(w.rand.Int64N(int64(5*time.Second))), w.join)
}

// join makes a new connection as soon as both ends live.
func (w *world) join() {
	for _, e := range w.ends {
		if e.engine == nil {
			w.after(time.Second, w.join)
			return
		}
	}
	w.carrier.up, w.carrier.units = true, [2]uint64{}
	for _, e := range w.ends {
		if e.engine == nil {
			return // it died meanwhile, and cut the connection
		}
		if err := e.step(wsrm.Event{Kind: wsrm.Connected}); err != nil {
			w.failf("end %d: %v", e.index, err)
		}
		e.settle()
	}
}

// carry brings a packet to the other end: units one by one, and all else as octets.
func (w *world) carry(from int, p *wsrm.Packet) {
	if !w.carrier.up {
		w.failf("end %d sends without a connection", from)
		return
	}
	var arrivals []func()
	to := w.ends[1-from]
	for _, u := range p.Units {
		u.Payload = bytes.Clone(u.Payload)
		arrivals = append(arrivals, func() {
			w.carrier.units[from] = u.Number
			to.take(&wsrm.Packet{Floor: 1, Units: []wsrm.Unit{u}})
		})
	}
	if len(p.Units) == 0 {
		octets := w.ends[from].engine.Codec().Append(nil, p)
		arrivals = append(arrivals, func() { to.receive(octets) })
	}
	for _, arrive := range arrivals {
		at := w.now.Add(time.Duration(w.rand.Int64N(int64(300 * time.Millisecond))))
		if at.Before(w.carrier.next[from]) {
			at = w.carrier.next[from]
		}
		w.carrier.next[from] = at
		number := w.carrier.number
		w.after(at.Sub(w.now), func() {
			if w.carrier.number == number {
				arrive()
			}
		})
	}
}

// take hands a packet to the engine, if there is one.
func (e *end) take(p *wsrm.Packet) {
	if e.engine == nil {
		return
	}
	if err := e.step(wsrm.Event{Kind: wsrm.Arrived, Packet: p}); err != nil {
		e.w.failf("end %d refused %+v: %v", e.index, p, err)
	}
	e.settle()
}

func carriedPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 3))
	p := plan{seed: seed, profile: "wifi", cfg: wsrm.Config{Assurance: wsrm.Assurance(1 + seed%3), Ordered: seed%3 == 0 || seed/3%2 == 0, Window: []int{64, 128, 1024}[r.IntN(3)], Hold: []int{20_000, 0}[r.IntN(2)], Carried: true}}
	p.messages = [2]int{20 + r.IntN(200), []int{0, 1, 100}[r.IntN(3)]}
	p.sizes = func(r *rand.Rand) int { return r.IntN(3000) }
	p.every = []time.Duration{0, 10 * time.Millisecond, time.Second}[r.IntN(3)]
	p.commit = []time.Duration{0, time.Millisecond, 3 * time.Second}[r.IntN(3)]
	p.crashes = []int{0, 1, 4}[r.IntN(3)]
	p.cuts = []int{0, 3, 20}[r.IntN(3)]
	p.volatile = p.cfg.Assurance != wsrm.ExactlyOnce && p.messages[1] == 0 && r.IntN(2) == 0
	return p
}

func simulateCarried(t *testing.T, seed uint64) {
	t.Helper()
	run(t, carriedPlan(seed))
}

// Any cuts of the connection, any crashes: every assurance holds, and every run ends.
func TestCarriedSimulation(t *testing.T) {
	seeds(t, 0, carriedSimulations, simulateCarried)
}

func carried(t *testing.T, cfg wsrm.Config) *wsrm.Engine {
	t.Helper()
	cfg.Carried = true
	return engine(t, cfg)
}

// What is sent once on a carrier is not sent again before the next one, however long that takes, and a whole message is one unit.
func TestCarriedIsSentOncePerCarrier(t *testing.T) {
	e := carried(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	_, err := e.Step(start, wsrm.Event{Kind: wsrm.Send, Message: make([]byte, 100_000)})
	require.NoError(t, err)
	step := func(after time.Duration, kind wsrm.EventKind) (units int) {
		actions, err := e.Step(start.Add(after), wsrm.Event{Kind: kind})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == wsrm.Transmit {
				units += len(a.Packet.Units)
			}
		}
		return units
	}
	assert.Zero(t, step(0, wsrm.Wake), "there is no carrier")
	assert.Zero(t, step(0, wsrm.Connected))
	assert.Equal(t, 1, step(0, wsrm.Wake))
	assert.Zero(t, step(24*time.Hour, wsrm.Wake), "nothing is lost on a carrier")
	assert.False(t, e.Over(), "nor given up")
	assert.Zero(t, step(25*time.Hour, wsrm.Disconnected))
	assert.Zero(t, step(26*time.Hour, wsrm.Wake))
	assert.Zero(t, step(27*time.Hour, wsrm.Connected))
	assert.Equal(t, 1, step(27*time.Hour, wsrm.Wake))
	assert.EqualValues(t, 1, e.Stats().Resent)
}

// Only an engine that is made for carriers has any, and at-most-once without order needs none.
func TestCarriedRefuses(t *testing.T) {
	e := engine(t, wsrm.Config{Assurance: wsrm.ExactlyOnce})
	for _, kind := range []wsrm.EventKind{wsrm.Connected, wsrm.Disconnected} {
		_, err := e.Step(start, wsrm.Event{Kind: kind})
		assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Misuse})
	}
	_, err := wsrm.New(wsrm.Config{Assurance: wsrm.AtMostOnce, Carried: true})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadConfig})
	e = carried(t, wsrm.Config{Assurance: wsrm.ExactlyOnce, Window: 64})
	_, err = e.Step(start, wsrm.Event{Kind: wsrm.Arrived, Packet: &wsrm.Packet{Floor: 1, Units: []wsrm.Unit{unit(65, "beyond the window")}}})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Invalid})
}

// A source that closed and died before all was done is open again in its next life; what it said of the end counts no more, in whatever order it comes.
func TestCarriedCloseIsTakenBack(t *testing.T) {
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Carried: true}
	// says is what an engine says on a new carrier, in packets without units.
	says := func(e *wsrm.Engine) (said []wsrm.Packet) {
		_, err := e.Step(start, wsrm.Event{Kind: wsrm.Connected})
		require.NoError(t, err)
		actions, err := e.Step(start, wsrm.Event{Kind: wsrm.Wake})
		require.NoError(t, err)
		for _, a := range actions {
			if a.Kind == wsrm.Transmit && len(a.Packet.Units) == 0 {
				said = append(said, *a.Packet)
			}
		}
		return said
	}
	first := engine(t, cfg)
	require.NoError(t, send(first, []byte("a")))
	_, err := first.Step(start, wsrm.Event{Kind: wsrm.Close})
	require.NoError(t, err)
	assert.True(t, first.Closed())
	require.Error(t, send(first, []byte("b")))
	old := says(first)
	require.Len(t, old, 1)
	require.True(t, old[0].Closing)

	second, err := wsrm.Restore(cfg, first.AppendState(nil))
	require.NoError(t, err)
	assert.False(t, second.Closed())
	require.NoError(t, send(second, []byte("b")))
	anew := says(second)
	require.Len(t, anew, 1)
	require.False(t, anew[0].Closing)
	_, err = second.Step(start, wsrm.Event{Kind: wsrm.Close})
	require.NoError(t, err)
	last := says(second)
	require.Len(t, last, 1)
	require.True(t, last[0].Closing)

	a, b := wsrm.Packet{Floor: 1, Units: []wsrm.Unit{unit(1, "a")}}, wsrm.Packet{Floor: 1, Units: []wsrm.Unit{unit(2, "b")}}
	for name, packets := range map[string][]wsrm.Packet{
		"as said":                     {old[0], a, anew[0], b, last[0]},
		"the message first":           {old[0], a, b, anew[0], last[0]},
		"the old end late":            {a, anew[0], old[0], b, last[0]},
		"the old end behind the last": {a, b, last[0], old[0]},
		"only the ends":               {old[0], last[0], a, b},
	} {
		there := engine(t, cfg)
		for i, p := range packets {
			_, err := arrive(there, start, p)
			require.NoError(t, err, "%s: %d", name, i)
			assert.False(t, there.Complete(), "%s: %d", name, i)
		}
		for n := range uint64(2) {
			_, err := there.Step(start, wsrm.Event{Kind: wsrm.Committed, Number: n + 1})
			require.NoError(t, err)
		}
		assert.True(t, there.Complete(), name)
	}
}

// At-most-once is done with what the end of a carrier leaves under way: it is told, never sent again, and the floor tells the other end, which passes over it, and over what it delivered and has not committed.
func TestCarriedAtMostOnce(t *testing.T) {
	cfg := wsrm.Config{Assurance: wsrm.AtMostOnce, Ordered: true, Window: 64}
	e, other := carried(t, cfg), carried(t, cfg)
	step := func(e *wsrm.Engine, ev wsrm.Event) []wsrm.Action {
		t.Helper()
		actions, err := e.Step(start, ev)
		require.NoError(t, err)
		return actions
	}
	step(other, wsrm.Event{Kind: wsrm.Connected})
	arrive := func(p *wsrm.Packet) []wsrm.Action {
		t.Helper()
		return kinds(step(other, wsrm.Event{Kind: wsrm.Arrived, Packet: p}), wsrm.Deliver)
	}
	step(e, wsrm.Event{Kind: wsrm.Connected})
	for _, m := range []string{"one", "two", "three"} {
		step(e, wsrm.Event{Kind: wsrm.Send, Message: []byte(m)})
	}
	step(e, wsrm.Event{Kind: wsrm.Wake})
	one := arrive(&wsrm.Packet{Floor: 1, Units: []wsrm.Unit{unit(1, "one")}})
	require.Len(t, one, 1)

	lost := kinds(step(e, wsrm.Event{Kind: wsrm.Disconnected}), wsrm.Lost)
	require.Len(t, lost, 1)
	assert.EqualValues(t, 1, lost[0].Number)
	assert.EqualValues(t, 3, lost[0].Count)
	step(e, wsrm.Event{Kind: wsrm.Send, Message: []byte("four")})
	step(e, wsrm.Event{Kind: wsrm.Connected})
	sent := kinds(step(e, wsrm.Event{Kind: wsrm.Wake}), wsrm.Transmit)
	require.Len(t, sent, 2)
	assert.Empty(t, arrive(&wsrm.Packet{Floor: 1, Units: []wsrm.Unit{unit(4, "four")}}), "its turn has not come")
	floor := sent[0].Packet
	assert.EqualValues(t, 4, floor.Floor)
	four := arrive(floor)
	require.Len(t, four, 1, "the floor gives it its turn")
	assert.EqualValues(t, 4, four[0].Number)
	require.Len(t, sent[1].Packet.Units, 1)
	assert.EqualValues(t, 4, sent[1].Packet.Units[0].Number)
	assert.Zero(t, e.Stats().Resent)
	assert.Empty(t, arrive(&wsrm.Packet{Floor: 1, Units: []wsrm.Unit{unit(2, "two")}}), "late, from the carrier before")
	_, err := other.Step(start, wsrm.Event{Kind: wsrm.Committed, Number: 1})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Misuse}, "it was given up")
	step(other, wsrm.Event{Kind: wsrm.Committed, Number: 4})
	_, _, received := other.Positions()
	assert.EqualValues(t, 4, received)
	assert.EqualValues(t, 3, other.Stats().GivenUp)
}

// kinds are the actions of one kind.
func kinds(actions []wsrm.Action, kind wsrm.ActionKind) (found []wsrm.Action) {
	for _, a := range actions {
		if a.Kind == kind {
			found = append(found, a)
		}
	}
	return found
}

// What at-most-once gives up ends where the carrier says that it was handed nothing any more; a carrier that another one follows is gone, whether or not anybody said so.
func TestCarriedGivesUp(t *testing.T) {
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
			e := carried(t, wsrm.Config{Assurance: wsrm.AtMostOnce, Ordered: true, Window: 64, Hold: 50})
			step := func(ev wsrm.Event) []wsrm.Action {
				actions, err := e.Step(start, ev)
				require.NoError(t, err)
				return actions
			}
			step(wsrm.Event{Kind: wsrm.Connected})
			for range 5 {
				step(wsrm.Event{Kind: wsrm.Send, Message: make([]byte, 10)})
			}
			step(wsrm.Event{Kind: wsrm.Wake})
			step(wsrm.Event{Kind: wsrm.Arrived, Packet: &wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Done: 2, Echo: 1}}})

			lost := kinds(step(c.ev), wsrm.Lost)
			if c.lost == 0 {
				assert.Empty(t, lost)
			} else {
				require.Len(t, lost, 1)
				assert.EqualValues(t, 3, lost[0].Number)
				assert.Equal(t, c.lost, lost[0].Count)
			}
			_, err := e.Step(start, wsrm.Event{Kind: wsrm.Send, Message: make([]byte, 50-10*len(c.sentAgain))})
			require.NoError(t, err, "what was given up makes room")
			step(wsrm.Event{Kind: wsrm.Connected})
			var floor uint64
			var sent []uint64
			for _, a := range kinds(step(wsrm.Event{Kind: wsrm.Wake}), wsrm.Transmit) {
				if len(a.Packet.Units) == 0 {
					floor = a.Packet.Floor
				}
				for _, u := range a.Packet.Units {
					sent = append(sent, u.Number)
				}
			}
			assert.Equal(t, 3+c.lost, floor)
			assert.Equal(t, append(c.sentAgain, 6), sent)
			assert.Zero(t, e.Stats().Resent)
			assert.EqualValues(t, c.lost, e.Stats().GivenUp)
		})
	}
}
