package wsrm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// randomPlan is what a seed makes of assurance, traffic, crashes and cuts.
func randomPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 3))
	p := plan{seed: seed, cfg: wsrm.Config{
		Assurance: wsrm.Assurance(1 + seed%3),
		Ordered:   seed%3 == 0 || seed/3%2 == 0,
		Window:    []int{64, 128, 1024}[r.IntN(3)],
		Hold:      []int{20_000, 0}[r.IntN(2)],
	}}
	p.messages = [2]int{20 + r.IntN(200), []int{0, 1, 100}[r.IntN(3)]}
	p.sizes = func(r *rand.Rand) int { return r.IntN(3000) }
	p.every = []time.Duration{0, 10 * time.Millisecond, time.Second}[r.IntN(3)]
	p.commit = []time.Duration{0, time.Millisecond, 3 * time.Second}[r.IntN(3)]
	p.crashes = []int{0, 1, 4}[r.IntN(3)]
	p.cuts = []int{0, 3, 20}[r.IntN(3)]
	p.volatile = p.cfg.Assurance != wsrm.ExactlyOnce && p.messages[1] == 0 && r.IntN(2) == 0
	return p
}

// check holds a run to its assurance.
func check(t testing.TB, w *world) {
	t.Helper()
	for i, from := range w.ends {
		checkDelivered(t, from, w.ends[1-i])
		for _, ended := range from.ended {
			if !from.keeps && ended.Remote && from.life > 1 {
				continue // a new life that began after the end
			}
			assert.Equal(t, wsrm.Complete, ended.Reason)
		}
	}
}

func checkDelivered(t testing.TB, from, to *end) {
	t.Helper()
	cfg := from.plan.cfg
	delivered, twice, last := map[int]bool{}, 0, -1
	for at, id := range to.log {
		for _, began := range to.lives {
			if began == at && cfg.Assurance == wsrm.AtLeastOnce {
				last = min(last, id-1) // a new life may begin with what the last one did not acknowledge
			}
		}
		if cfg.Ordered {
			assert.Greater(t, id, last, "out of order at %d", at)
		}
		last = id
		if delivered[id] {
			twice++
		}
		delivered[id] = true
	}
	if cfg.Assurance != wsrm.AtLeastOnce {
		assert.Zero(t, twice, "delivered twice")
	}
	for id := range from.ids {
		if cfg.Assurance == wsrm.AtMostOnce {
			assert.True(t, delivered[id] || from.lost[id], "message %d was lost in silence", id)
			continue
		}
		assert.True(t, delivered[id], "message %d was not delivered", id)
		assert.True(t, from.acked[id], "message %d was not acknowledged", id)
		assert.False(t, from.lost[id] || from.given[id], "message %d was given up", id)
	}
}

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	p := randomPlan(seed)
	w := newWorld(p)
	ended := w.run(30*24*time.Hour, w.over)
	require.Empty(t, w.fails, "seed %d: %+v", seed, p)
	require.True(t, ended, "seed %d: after %v: %+v", seed, w.Now.Sub(start), p)
	check(t, w)
	if t.Failed() {
		t.Logf("seed %d: %+v", seed, p)
	}
}

// Any cuts of the connection, any crashes: every assurance holds, and every run ends.
func TestSimulation(t *testing.T) { seeds(t, 0, simulations) }

// seeds runs a simulation for each of n seeds, as many at once as there are cores, until one fails.
func seeds(t *testing.T, from, n uint64) {
	t.Helper()
	for seed := from; seed < from+n; seed++ {
		t.Run(fmt.Sprint(seed), func(one *testing.T) {
			one.Parallel()
			if !t.Failed() {
				simulate(one, seed)
			}
		})
	}
}

func machine(t testing.TB, cfg wsrm.Config) *wsrm.Machine {
	t.Helper()
	m, err := wsrm.NewMachine(cfg)
	require.NoError(t, err)
	return m
}

func send(m *wsrm.Machine, message []byte) error {
	_, err := m.Step(start, wsrm.Event{Kind: wsrm.Send, Message: message})
	return err
}

// step has something happen that is not refused.
func step(t testing.TB, m *wsrm.Machine, now time.Time, ev wsrm.Event) []wsrm.Action {
	t.Helper()
	actions, err := m.Step(now, ev)
	require.NoError(t, err)
	return actions
}

func arrived(number uint64, message string) wsrm.Event {
	return wsrm.Event{Kind: wsrm.Arrived, Number: number, Message: []byte(message)}
}

// heard is a packet without messages, as it is said.
func heard(p window.Packet) wsrm.Event {
	return wsrm.Event{Kind: wsrm.Heard, Message: p.Append(nil)}
}

// said reads what an engine says.
func said(t testing.TB, a wsrm.Action) (p window.Packet) {
	t.Helper()
	require.NoError(t, p.Parse(a.Message))
	return p
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

func find(t testing.TB, actions []wsrm.Action, kind wsrm.ActionKind) wsrm.Action {
	t.Helper()
	found := kinds(actions, kind)
	require.NotEmpty(t, found, "kind %d in %+v", kind, actions)
	return found[0]
}
