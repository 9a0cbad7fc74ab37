package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	joinWithin = time.Minute
	lifetime   = time.Hour
)

// happening is an event at a time, with what follows.
type happening struct {
	after time.Duration // the one before
	Event
	want []Task
}

func forget(session byte, revision uint64) Task {
	return Task{Do: Forget, Session: ID{session}, Revision: revision}
}

func negotiated(session byte, peer string) Negotiated { return Negotiated{ID{session}, peer} }

func stored(session byte) Recorded { return Recorded{ID{session}, 100 + uint64(session)} }

func joinedBy(session byte, peer string) Joined { return Joined{ID{session}, peer} }

// Each decision, by the events that lead to it.
func TestDecisions(t *testing.T) {
	turnedAway := []Task{{Do: TurnAway}}
	wake := func(after time.Duration) Task { return Task{Do: Wake, At: epoch.Add(after)} }
	extend := func(session byte) Task { return Task{Do: Extend, Session: ID{session}, Lifetime: lifetime} }
	for name, tc := range map[string]struct {
		cfg  Config
		what []happening
	}{
		"joined ones are never dropped": {Config{Max: 2, PerPeer: 2}, []happening{
			{0, joinedBy(1, "a"), nil}, {0, joinedBy(2, "a"), nil}, {0, negotiated(3, "b"), turnedAway},
			{0, joinedBy(4, "b"), turnedAway}, {0, Left{ID{1}, 1}, nil}, {0, joinedBy(4, "b"), nil},
		}},
		"the oldest that waits goes": {Config{Max: 2, PerPeer: 2}, []happening{
			{0, negotiated(1, "a"), nil}, {0, stored(1), nil}, {0, negotiated(2, "a"), nil},
			{0, stored(2), nil},
			{0, negotiated(3, "b"), []Task{forget(1, 101)}},
		}},
		"one of the peer that has most goes": {Config{Max: 3, PerPeer: 3}, []happening{
			{0, negotiated(1, "a"), nil}, {0, stored(1), nil},
			{0, negotiated(2, "b"), nil}, {0, stored(2), nil}, {0, negotiated(3, "b"), nil},
			{0, stored(3), nil},
			{0, joinedBy(4, "c"), []Task{forget(2, 102)}},
		}},
		"one of its own goes where the peer has its share": {Config{Max: 9, PerPeer: 2}, []happening{
			{0, negotiated(1, "a"), nil}, {0, stored(1), nil}, {0, joinedBy(2, "b"), nil},
			{0, negotiated(3, "b"), nil},
			{0, stored(3), nil}, {0, negotiated(4, "b"), []Task{forget(3, 103)}}, {0, joinedBy(4, "b"), nil},
			{0, negotiated(5, "b"), turnedAway},
		}},
		"who has no limit has none": {Config{Max: 3, PerPeer: 1}, []happening{
			{0, joinedBy(1, ""), nil}, {0, joinedBy(2, ""), nil}, {0, joinedBy(3, ""), nil},
			{0, joinedBy(4, ""), turnedAway},
		}},
		"what has waited for too long goes first": {Config{Max: 3, PerPeer: 3}, []happening{
			{0, negotiated(1, "a"), nil}, {0, stored(1), nil},
			{joinWithin + 1, negotiated(2, "b"), nil}, {0, stored(2), nil}, {0, negotiated(3, "b"), nil},
			{0, stored(3), nil},
			{0, negotiated(4, "c"), []Task{forget(1, 101)}},
		}},
		"it waits for its time": {Config{Max: 2, PerPeer: 2}, []happening{
			{0, negotiated(1, "a"), nil}, {0, stored(1), nil}, {joinWithin, negotiated(2, "a"), nil},
			{0, joinedBy(2, "a"), nil},
			{0, joinedBy(1, "a"), nil}, {0, joinedBy(3, "b"), turnedAway},
		}},
		"nobody goes for one that is turned away": {Config{Max: 3, PerPeer: 1}, []happening{
			{0, negotiated(1, "a"), nil}, {0, stored(1), nil}, {0, joinedBy(2, "b"), nil},
			{0, negotiated(3, "b"), turnedAway},
			{0, joinedBy(1, "a"), nil},
		}},
		"dropped before it is stored": {Config{Max: 1, PerPeer: 1}, []happening{
			{0, negotiated(1, "a"), nil}, {0, negotiated(2, "b"), nil},
			{0, stored(1), []Task{forget(1, 101), {Do: TurnAway}}}, {0, stored(2), nil},
		}},
		"withdrawn": {Config{Max: 1, PerPeer: 1, Kept: 9}, []happening{
			{0, negotiated(1, "a"), nil}, {0, Withdrawn{ID{1}}, nil}, {0, joinedBy(2, "b"), nil},
			{0, joinedBy(2, "b"), nil},
			{0, Withdrawn{ID{2}}, nil}, {0, joinedBy(3, "b"), turnedAway}, {0, Left{ID{2}, 1}, nil},
			{0, joinedBy(3, "b"), nil},
		}},
		"the last stream ends a session": {Config{Max: 1, PerPeer: 1, Kept: 9}, []happening{
			{0, joinedBy(1, "a"), nil}, {0, joinedBy(1, "b"), nil}, {0, Left{ID{1}, 1}, nil},
			{0, joinedBy(2, "a"), turnedAway},
			{0, Left{ID{1}, 1}, nil}, {0, joinedBy(2, "a"), nil},
		}},
		"records of ended ones": {Config{Max: 9, PerPeer: 9, Kept: 5}, []happening{
			{0, joinedBy(1, "a"), nil}, {0, joinedBy(2, "a"), nil}, {0, joinedBy(3, "a"), nil},
			{0, joinedBy(4, "a"), nil},
			{0, Left{ID{1}, 2}, nil}, {0, Left{ID{2}, 2}, nil},
			{0, joinedBy(1, "a"), nil}, // it is not among them any more
			{0, Left{ID{3}, 3}, nil}, {0, Left{ID{4}, 1}, []Task{forget(2, 0)}}, {0, Left{ID{4}, 1}, nil},
			{0, Left{ID{1}, 9}, []Task{forget(3, 0), forget(4, 0)}}, // the last one stays, whatever it weighs
		}},
		"all are archived": {Config{Max: 9, PerPeer: 9}, []happening{
			{0, joinedBy(1, "a"), nil}, {0, Left{ID{1}, 100}, nil}, {0, joinedBy(2, "a"), nil},
			{0, Left{ID{2}, 100}, nil},
		}},
		"records are kept halfway": {Config{Max: 9, PerPeer: 9, Kept: 9}, []happening{
			{0, joinedBy(1, "a"), nil}, {0, Lasting{ID{1}, lifetime}, []Task{wake(lifetime / 2)}},
			{lifetime / 16, joinedBy(2, "a"), nil}, {0, Lasting{ID{2}, lifetime}, nil},
			{0, joinedBy(3, "a"), nil},
			{lifetime * 7 / 16, Woken{}, []Task{extend(1), extend(2), wake(lifetime)}}, // 3 has no record yet
			{lifetime / 2, Left{ID{1}, 1}, nil},
			{0, Woken{}, []Task{extend(2), wake(lifetime * 3 / 2)}}, {0, Left{ID{2}, 1}, nil},
			{0, Woken{}, nil},
		}},
		"sooner": {Config{Max: 9, PerPeer: 9}, []happening{
			{0, joinedBy(1, "a"), nil}, {0, Lasting{ID{1}, lifetime}, []Task{wake(lifetime / 2)}},
			{0, joinedBy(2, "a"), nil}, {0, Lasting{ID{2}, lifetime / 4}, []Task{wake(lifetime / 8)}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.JoinWithin = joinWithin
			m, now := New(tc.cfg), epoch
			for i, h := range tc.what {
				now = now.Add(h.after)
				assert.ElementsMatch(t, h.want, m.Step(now, h.Event), "%d: %T%v", i, h.Event, h.Event)
			}
		})
	}
}

// Whatever two events follow each other, in whatever state: those of sessions that are not there
// change nothing, and the counts stay right.
func TestAllPairs(t *testing.T) {
	var events []Event
	for _, id := range []ID{{1}, {2}, {9}} {
		events = append(events, Recorded{id, 7}, Lasting{id, lifetime}, Withdrawn{id}, Left{id, 1})
		for _, peer := range []string{"", "a", "b"} {
			events = append(events, Joined{id, peer})
		}
	}
	events = append(events, Woken{}, Negotiated{ID{3}, ""}, Negotiated{ID{4}, "a"}, Negotiated{ID{5}, "b"})
	starts := map[string][]Event{
		"empty": nil,
		"waits": {Negotiated{ID{1}, "a"}}, "stored": {Negotiated{ID{1}, "a"}, Recorded{ID{1}, 3}},
		"joined": {Joined{ID{1}, "a"}}, "joined twice": {Joined{ID{1}, "a"}, Joined{ID{1}, "b"}},
		"kept": {Joined{ID{1}, "a"}, Lasting{ID{1}, lifetime}}, "ended": {Joined{ID{1}, "a"}, Left{ID{1}, 1}},
		"full": {Joined{ID{1}, "a"}, Negotiated{ID{2}, "b"}, Recorded{ID{2}, 4}},
	}
	for name, start := range starts {
		for _, first := range events {
			for _, second := range events {
				if n, ok := first.(Negotiated); ok && n == second {
					continue // names do not come twice
				}
				m := New(Config{Max: 2, PerPeer: 1, JoinWithin: joinWithin, Kept: 2})
				for _, e := range start {
					m.Step(epoch, e)
				}
				for _, e := range []Event{first, second} {
					before := fmt.Sprint(m.known())
					about, known := m.about(e)
					tasks := m.Step(epoch, e)
					if about && !known && fmt.Sprint(m.known()) != before {
						require.Fail(t, "changed", "%s: %T%v, %T%v", name, first, first, second, second)
					}
					if about && !known {
						require.NotContains(t, fmt.Sprint(tasks), fmt.Sprint(Extend))
					}
					m.check(t)
				}
			}
		}
	}
}

// about reports whether an event is about a session that has to be there, and whether that is.
func (m *Machine) about(e Event) (about, known bool) {
	has := func(id ID) bool { return m.waiting[id] != nil || m.joined[id] != nil }
	switch e := e.(type) {
	case Recorded:
		return true, has(e.Session)
	case Lasting:
		return true, m.joined[e.Session] != nil
	case Withdrawn:
		return true, has(e.Session)
	case Left:
		return true, has(e.Session)
	}
	return false, false
}

// known are all sessions with their states.
func (m *Machine) known() map[ID]string {
	all := map[ID]string{}
	for id, w := range m.waiting {
		all[id] = fmt.Sprint(w.peer.name, w.until, w.number, w.revision)
	}
	for id, j := range m.joined {
		all[id] = fmt.Sprint(j.peer.name, j.streams, j.lifetime, j.due)
	}
	for _, o := range m.ended {
		all[o.id] = fmt.Sprint(o.weight)
	}
	return all
}

// check holds the counts against what is there.
func (m *Machine) check(t *testing.T) {
	t.Helper()
	has, weight := map[string]int{}, 0
	for id, w := range m.waiting {
		require.Nil(t, m.joined[id])
		has[w.peer.name]++
	}
	for _, j := range m.joined {
		require.Positive(t, j.streams)
		has[j.peer.name]++
	}
	for _, o := range m.ended {
		require.Nil(t, m.joined[o.id])
		weight += o.weight
	}
	require.LessOrEqual(t, m.len(), m.cfg.Max)
	require.Equal(t, weight, m.weight)
	require.True(t, len(m.ended) < 2 || weight <= m.cfg.Kept)
	require.Len(t, m.peers, len(has))
	for name, n := range has {
		require.Equal(t, n, m.peers[name].sessions)
		require.True(t, name == "" || n <= m.cfg.PerPeer)
	}
}
