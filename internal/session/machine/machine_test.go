package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// configs are all kinds of sessions: those that calls can ask for a stream, those with a sequence,
// and those with neither.
func configs() (all []Config) {
	for _, kind := range []struct{ asks, sequenced, required bool }{
		{}, {required: true}, {asks: true}, {asks: true, required: true}, {sequenced: true, required: true},
		{asks: true, sequenced: true, required: true},
	} {
		for _, reconnect := range []time.Duration{0, time.Second} {
			for _, nodes := range []int{1, 2} {
				all = append(all, Config{
					Asks: kind.asks, Sequenced: kind.sequenced, Required: kind.required, Reconnect: reconnect,
					Nodes: nodes, Random: func(d time.Duration) time.Duration { return d / 2 },
				})
			}
		}
	}
	return all
}

// events are all that may happen, with a stream of each age.
func events() (all []Event) {
	all = append(all, Called{}, Postponed{}, Carried{}, Ended{}, Connected{1}, Connected{2})
	for i := range 2 {
		all = append(all, Refused{Portal: i > 0})
	}
	for i := range 16 {
		all = append(all, Answered{Invited: i&1 != 0, Refused: i&2 != 0, Passes: i&4 != 0, Silent: i&8 != 0})
	}
	for i := range 8 {
		all = append(all, Missed{Passes: i&1 != 0, Portal: i&2 != 0, Forgets: i&4 != 0})
	}
	for i := range 64 {
		all = append(all, Lost{
			Stream: 1 + i&1, Met: i&2 != 0, Refused: i&4 != 0, Unconnected: i&8 != 0, Beyond: i&16 != 0,
			Broken: i&4 == 0, ByCalls: i&32 != 0, Declared: i&32 != 0,
		})
	}
	return all
}

// starts are machines in each state, by the events that lead there.
func starts(cfg Config) map[string][]Event {
	lost := Lost{Stream: 1, Met: true, Broken: true}
	all := map[string][]Event{
		"dialing":   nil,
		"streaming": {Connected{1}},
		"lost":      {Connected{1}, lost},
		"second":    {Connected{1}, lost, Connected{2}},
		"plain":     {Refused{}},
		"portal":    {Refused{Portal: true}},
		"closed":    {Ended{}},
	}
	if cfg.Asks && !cfg.Sequenced {
		all["fresh"] = []Event{Postponed{}}
		all["asking"] = []Event{Postponed{}, Called{}}
		all["joining"] = []Event{Postponed{}, Called{}, Answered{Invited: true}}
		all["unmet"] = []Event{Connected{1}, Lost{Stream: 1}}
	}
	return all
}

func at(cfg Config, events []Event) *Machine {
	m := New(cfg, epoch)
	for _, e := range events {
		m.Step(epoch, e)
	}
	return m
}

// next says which states each event may lead to from each state, beside staying there.
var next = map[Phase]map[string][]Phase{
	Dialing: {
		"Postponed": {Fresh}, "Connected": {Streaming}, "Refused": {Plain}, "Ended": {Closed},
	},
	Fresh:     {"Called": {Asking}, "Connected": {Streaming}, "Ended": {Closed}},
	Asking:    {"Answered": {Fresh, Joining, Plain}, "Connected": {Streaming}, "Ended": {Closed}},
	Joining:   {"Refused": {Plain}, "Connected": {Streaming}, "Ended": {Closed}},
	Streaming: {"Lost": {Fresh, Replacing, Plain}, "Ended": {Closed}},
	Replacing: {"Connected": {Streaming}, "Missed": {Plain}, "Ended": {Closed}},
	Plain:     {"Connected": {Streaming}, "Ended": {Closed}},
	Closed:    {},
}

// allowed are the deeds that may come with a step from one state to another.
var allowed = map[[2]Phase][]Deed{
	{Dialing, Dialing}: {Try}, {Fresh, Asking}: {Ask}, {Asking, Joining}: {Join}, {Asking, Fresh}: {Explain},
	{Asking, Plain}: {Settle}, {Joining, Plain}: {Settle}, {Streaming, Fresh}: {Undo, Leave},
	{Streaming, Replacing}: {Undo, Replace}, {Streaming, Plain}: {Fall, EndSequence}, {Replacing, Replacing}: {Try},
	{Replacing, Plain}: {Fall, EndSequence}, {Closed, Closed}: {Drop}, {Streaming, Streaming}: {Use},
	{Dialing, Streaming}: {Use}, {Fresh, Streaming}: {Use}, {Asking, Streaming}: {Use}, {Joining, Streaming}: {Use},
	{Replacing, Streaming}: {Use}, {Plain, Streaming}: {Use},
}

func kind(e Event) string { return fmt.Sprintf("%T", e)[len("machine."):] }

// TestEachPair: any two events after one another, in any state of any session, lead where the table
// says, and do what it says. An event that is repeated or comes late changes nothing.
func TestEachPair(t *testing.T) {
	all := events()
	pairs := 0
	for _, cfg := range configs() {
		if cfg.Nodes > 1 {
			continue // the attempts are more, and the states the same
		}
		for name, start := range starts(cfg) {
			for _, first := range all {
				for _, second := range all {
					m := at(cfg, start)
					followed(t, m, first)
					followed(t, m, second)
					pairs++
					if t.Failed() {
						t.Fatalf("%s, %#v, then %#v, %+v", name, first, second, cfg)
					}
				}
			}
		}
	}
	assert.Greater(t, pairs, 500_000)
}

// followed takes a step, and checks it against the tables.
func followed(t *testing.T, m *Machine, e Event) {
	from := m.Phase()
	tasks := m.Step(epoch, e)
	to := m.Phase()
	if to != from && !slices.Contains(next[from][kind(e)], to) {
		t.Errorf("%v led from %v to %v", e, from, to)
	}
	for _, a := range tasks {
		if !slices.Contains(allowed[[2]Phase{from, to}], a.Do) {
			t.Errorf("deed %d from %v to %v", a.Do, from, to)
		}
	}
	if (to == Fresh || to == Asking || to == Joining) != m.Undecided() {
		t.Errorf("%v is undecided: %v", to, m.Undecided())
	}
}

// Each step of the table is taken by some pair: it has none that is not there.
func TestEachStepIsTaken(t *testing.T) {
	open := map[string]bool{}
	for from, by := range next {
		for e, to := range by {
			for _, to := range to {
				open[fmt.Sprint(from, e, to)] = true
			}
		}
	}
	for _, cfg := range configs() {
		for _, start := range starts(cfg) {
			for _, e := range events() {
				m := at(cfg, start)
				from := m.Phase()
				m.Step(epoch, e)
				delete(open, fmt.Sprint(from, kind(e), m.Phase()))
			}
		}
	}
	assert.Empty(t, open)
}

// The decisions that tests of sessions see only now and then.
func TestDecisions(t *testing.T) {
	asks := Config{Asks: true, Nodes: 1}
	sequenced := Config{Sequenced: true, Required: true, Reconnect: time.Minute, Nodes: 1}
	reconnects := Config{Asks: true, Reconnect: time.Minute, Nodes: 1}
	for name, c := range map[string]struct {
		cfg    Config
		before []Event
		event  Event
		state  Phase
		does   []Task
	}{
		"a stream that nobody accepted, of no use any more": {
			asks, []Event{Connected{1}}, Lost{Stream: 1}, Fresh, []Task{{Do: Undo}},
		},
		"one that is required": {
			Config{Asks: true, Required: true, Nodes: 1}, []Event{Connected{1}}, Lost{Stream: 1}, Replacing,
			[]Task{{Do: Undo}, {Do: Replace, Careful: true}},
		},
		"one that may come later": {
			reconnects, []Event{Connected{1}}, Lost{Stream: 1}, Replacing,
			[]Task{{Do: Undo}, {Do: Replace, Careful: true}},
		},
		"one that was refused": {
			reconnects, []Event{Connected{1}}, Lost{Stream: 1, Refused: true}, Fresh, []Task{{Do: Undo}},
		},
		"one that only calls get": {
			reconnects, []Event{Connected{1}}, Lost{Stream: 1, Met: true, ByCalls: true}, Fresh, []Task{{Do: Leave}},
		},
		"one of a sequence": {
			sequenced, []Event{Connected{1}}, Lost{Stream: 1}, Replacing, []Task{{Do: Replace}},
		},
		"one of a sequence that nobody took": {
			sequenced, []Event{Connected{1}}, Lost{Stream: 1, Unconnected: true}, Replacing,
			[]Task{{Do: Replace, Careful: true}},
		},
		"one that a message was too long for": {
			sequenced, []Event{Connected{1}}, Lost{Stream: 1, Met: true, Beyond: true}, Plain,
			[]Task{{Do: EndSequence}},
		},
		"one that carried others before it": {
			sequenced, []Event{Connected{1}}, Lost{Stream: 1, Met: true, Beyond: true, Progress: 1}, Replacing,
			[]Task{{Do: Replace}},
		},
		"one that broke": {
			asks, []Event{Connected{1}}, Lost{Stream: 1, Met: true, Broken: true}, Plain,
			[]Task{{Do: Fall, Remember: true}},
		},
		"one that went away": {
			asks, []Event{Connected{1}}, Lost{Stream: 1, Met: true}, Plain, []Task{{Do: Fall}},
		},
		"one that is over already": {asks, []Event{Connected{1}, Connected{2}}, Lost{Stream: 1}, Streaming, nil},
		"the end of one that was lost": {
			asks, []Event{Connected{1}, Lost{Stream: 1, Met: true}}, Lost{Stream: 1, Met: true}, Plain, nil,
		},
		"no answer to a call, where there was a stream": {
			Config{Asks: true, Reconnect: time.Minute, Nodes: 1},
			[]Event{Connected{1}, Lost{Stream: 1, Met: true, ByCalls: true}, Called{}},
			Answered{Refused: true, Silent: true}, Fresh, []Task{{Do: Explain}},
		},
		"no answer where there was none": {
			asks, []Event{Postponed{}, Called{}}, Answered{Refused: true, Silent: true}, Plain,
			[]Task{{Do: Settle, Remember: true}},
		},
		"nobody there": {asks, []Event{Postponed{}, Called{}}, Answered{Silent: true}, Fresh, nil},
		"the answer to a call that opened a stream, which is lost": {
			asks, []Event{Postponed{}, Called{}, Connected{1}, Lost{Stream: 1}}, Answered{}, Fresh, nil,
		},
		"a stream after the end": {asks, []Event{Ended{}}, Connected{1}, Closed, []Task{{Do: Drop}}},
		"a portal in the place of a peer": {
			reconnects, []Event{Connected{1}, Lost{Stream: 1, Met: true}}, Missed{Portal: true}, Plain,
			[]Task{{Do: Fall}},
		},
		"a peer that has no space": {
			reconnects, []Event{Connected{1}, Lost{Stream: 1, Met: true}}, Missed{Forgets: true}, Plain,
			[]Task{{Do: Fall}},
		},
		"a peer that refuses": {
			reconnects, []Event{Connected{1}, Lost{Stream: 1, Met: true}}, Missed{}, Plain,
			[]Task{{Do: Fall, Remember: true}},
		},
	} {
		m := at(c.cfg, c.before)
		assert.Equal(t, c.does, append([]Task(nil), m.Step(epoch, c.event)...), name)
		assert.Equal(t, c.state, m.Phase(), name)
	}
}

// A call that gets no answer asks so often, and no further one asks after that.
func TestUnanswered(t *testing.T) {
	cfg := Config{Asks: true, Reconnect: time.Minute, Nodes: 1}
	m := at(cfg, []Event{Connected{1}, Lost{Stream: 1, Met: true, ByCalls: true}})
	silent := Answered{Refused: true, Silent: true}
	for range MaxUnanswered {
		require.NotEmpty(t, m.Step(epoch, Called{}))
		m.Step(epoch, silent)
		require.Equal(t, Fresh, m.Phase())
	}
	m.Step(epoch, Called{})
	m.Step(epoch, silent)
	assert.Equal(t, Plain, m.Phase())
}

// Streams that make no progress are replaced so often, and one that carries a message counts for
// nothing.
func TestFailedStreams(t *testing.T) {
	cfg := Config{Reconnect: time.Minute, Nodes: 1}
	m := New(cfg, epoch)
	for i := range 3 * MaxFailedStreams {
		m.Step(epoch, Connected{i})
		m.Step(epoch, Carried{})
		assert.False(t, m.Failing())
		m.Step(epoch, Lost{Stream: i, Met: true})
		require.Equal(t, Replacing, m.Phase(), i)
		assert.True(t, m.Failing())
	}
	for i := range MaxFailedStreams - 1 {
		m.Step(epoch, Connected{i})
		m.Step(epoch, Lost{Stream: i, Met: true})
		require.Equal(t, Replacing, m.Phase(), i)
	}
	m.Step(epoch, Connected{1})
	m.Step(epoch, Lost{Stream: 1, Met: true})
	assert.Equal(t, Plain, m.Phase())
}

// Progress of a sequence counts as that of its stream.
func TestSequencesProgress(t *testing.T) {
	m := New(Config{Sequenced: true, Required: true, Reconnect: time.Minute, Nodes: 1}, epoch)
	for i := range 3 * MaxFailedStreams {
		m.Step(epoch, Connected{i})
		m.Step(epoch, Lost{Stream: i, Met: true, Progress: int64(i + 1)})
		require.Equal(t, Replacing, m.Phase(), i)
	}
}

// What the states know beside their names.
func TestStatesKnow(t *testing.T) {
	m := at(Config{Asks: true, Nodes: 1}, []Event{Connected{1}, Lost{Stream: 1, Declared: true}})
	assert.True(t, m.Undeclared())
	assert.False(t, m.Met())
	assert.False(t, m.Portal())
	m.Step(epoch, Connected{2})
	m.Step(epoch, Lost{Stream: 2, Met: true})
	assert.True(t, m.Met())
	assert.Equal(t, Plain, m.Phase())
	assert.True(t, at(Config{Nodes: 1}, []Event{Refused{Portal: true}}).Portal())
}
