package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world carries out what a machine wants, in an order by chance: results come late, twice, or after
// those of later attempts.
type world struct {
	t       *testing.T
	r       *rand.Rand
	m       *Machine
	cfg     Config
	now     time.Time
	due     []Event
	streams int
}

func (w *world) chance(percent int) bool { return w.r.IntN(100) < percent }

// step takes an event, and puts what follows from the tasks into due.
func (w *world) step(e Event) {
	from := w.m.Phase()
	if opened, ok := e.(Connected); ok && from != Closed {
		defer func() { w.due = append(w.due, w.end(opened.Stream)) }()
	}
	tasks := w.m.Step(w.now, e)
	if _, missed := e.(Missed); missed && from == Dialing && len(tasks) == 0 {
		w.due = append(w.due, Refused{})
	}
	for _, a := range slices.Clone(tasks) {
		w.carryOut(a)
	}
	switch state := w.m.Phase(); {
	case from == Closed:
		assert.Equal(w.t, Closed, state)
	case w.cfg.Sequenced:
		assert.NotContains(w.t, []Phase{Fresh, Asking, Joining}, state)
	case state == Asking && from != Asking:
		assert.Equal(w.t, Fresh, from)
	}
	assert.Equal(w.t, w.m.failed > 0, w.m.Failing())
}

func (w *world) carryOut(a Task) {
	w.now = w.now.Add(a.After)
	switch a.Do {
	case Ask:
		w.due = append(w.due, w.asked())
	case Join:
		w.due = append(w.due, w.oneOf(w.opened(), Refused{}))
	case Replace, Try:
		require.LessOrEqual(w.t, w.m.failed, MaxFailedStreams)
		w.due = append(w.due, w.oneOf(w.opened(), Missed{Passes: w.chance(70), Portal: w.chance(10)}))
	case EndSequence:
		require.True(w.t, w.cfg.Sequenced)
	case Fall, Settle:
		require.False(w.t, w.cfg.Sequenced)
	case Use, Drop, Undo, Leave, Explain:
	}
}

func (w *world) oneOf(events ...Event) Event { return events[w.r.IntN(len(events))] }

func (w *world) opened() Event {
	w.streams++
	return Connected{w.streams}
}

func (w *world) asked() Event {
	return w.oneOf(w.opened(), Answered{Invited: w.chance(30), Refused: w.chance(70), Passes: w.chance(50),
		Silent: w.chance(30)})
}

func (w *world) end(stream int) Event {
	return Lost{
		Stream: stream, Met: w.chance(70), Refused: w.chance(30), Unconnected: w.chance(20), Beyond: w.chance(10),
		Broken: w.chance(50), Declared: w.chance(20), ByCalls: w.chance(20), Progress: int64(w.r.IntN(20)),
	}
}

// simulate runs a session for some hundred events, then lets all that is in flight come to its end.
func simulate(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	all := configs()
	cfg := all[r.IntN(len(all))]
	cfg.Random = func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d) + 1)) }
	w := &world{t: t, r: r, m: New(cfg, epoch), cfg: cfg, now: epoch}
	first := []Event{w.opened(), Missed{Passes: true}, Refused{}}
	if cfg.Asks && !cfg.Sequenced {
		first = append(first, Postponed{})
	}
	w.step(w.oneOf(first...))
	for range 200 {
		w.now = w.now.Add(time.Duration(r.IntN(1000)) * time.Millisecond)
		switch {
		case w.chance(30):
			w.step(Called{})
		case w.chance(20):
			w.step(Carried{})
		case len(w.due) > 0:
			i := r.IntN(len(w.due))
			e := w.due[i]
			if !w.chance(10) { // else it comes once more
				w.due = slices.Delete(w.due, i, i+1)
			}
			w.step(e)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, cfg)
		}
	}
	settle(t, w, seed)
}

// settle lets what is in flight end. No session waits for something that nobody does.
func settle(t *testing.T, w *world, seed uint64) {
	for range 100_000 {
		if len(w.due) == 0 {
			break
		}
		e := w.due[0]
		w.due = w.due[1:]
		w.step(e)
	}
	assert.Empty(t, w.due)
	assert.Contains(t, []Phase{Fresh, Plain}, w.m.Phase(), "seed %d", seed)
	w.step(Ended{})
	w.step(w.opened())
	assert.Equal(t, Closed, w.m.Phase())
}

// TestSimulation: whatever comes late, twice or in another order, a session ends up fresh or in
// plain SOAP when its streams end and nothing is in flight, and never waits for nobody.
func TestSimulation(t *testing.T) {
	for seed := range uint64(2000) {
		simulate(t, seed)
		if t.Failed() {
			return
		}
	}
}
