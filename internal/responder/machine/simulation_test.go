package machine

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world are peers and a store, by chance: records are written and deleted late, streams come and go
// in any order, and some answers never reach their peer.
type world struct {
	t        *testing.T
	r        *rand.Rand
	m        *Machine
	now      time.Time
	wake     time.Time // zero: nobody wakes the machine
	records  map[ID]*record
	streams  map[ID]int
	unstored []ID
	waiting  map[ID]string // with its peer
	sessions int
	revision uint64
}

// record is what the store has of a session.
type record struct {
	revision uint64
	expires  time.Time // of those that streams have joined
}

func (w *world) peer() string { return []string{"", "a", "b", "c"}[w.r.IntN(4)] }

// step takes an event; false: it was turned away.
func (w *world) step(e Event) (ok bool) {
	ok = true
	for _, task := range w.m.Step(w.now, e) {
		switch task.Do {
		case TurnAway:
			ok = false
		case Forget:
			require.Zero(w.t, w.streams[task.Session], "the record of a session with streams is forgotten")
			if r := w.records[task.Session]; r != nil && (task.Revision == 0 || task.Revision == r.revision) {
				delete(w.records, task.Session)
			}
			delete(w.waiting, task.Session)
		case Extend:
			require.Positive(w.t, w.streams[task.Session])
			w.records[task.Session].expires = w.now.Add(task.Lifetime)
		case Wake:
			w.wake = task.At
		}
	}
	w.m.check(w.t)
	return ok
}

// turnedAway holds that there is no slot for a session of a peer, indeed.
func (w *world) turnedAway(peer string) {
	if p := w.m.peers[peer]; p != nil && peer != "" && p.sessions >= w.m.cfg.PerPeer {
		for _, o := range w.m.waiting {
			require.NotEqual(w.t, peer, o.peer.name, "one of its own could go")
		}
		return
	}
	require.Equal(w.t, w.m.cfg.Max, w.m.len())
	require.Empty(w.t, w.m.waiting)
}

func (w *world) joins(id ID, peer string) {
	if !w.step(Joined{id, peer}) {
		w.turnedAway(peer)
		return
	}
	delete(w.waiting, id)
	w.streams[id]++
	if w.r.IntN(10) == 0 { // its record could not be written
		if w.records[id] == nil {
			w.leaves(id, Withdrawn{id})
		} else {
			w.leaves(id, Left{id, 1})
		}
		return
	}
	lasts := time.Duration(1+w.r.IntN(10)) * time.Hour
	w.revision++
	w.records[id] = &record{w.revision, w.now.Add(lasts)}
	w.step(Lasting{id, lasts})
}

func (w *world) leaves(id ID, e Event) {
	if w.streams[id]--; w.streams[id] == 0 {
		delete(w.streams, id)
	}
	w.step(e)
}

// any returns a session of a map.
func (w *world) any(n int, all func(func(ID))) (id ID, ok bool) {
	if n == 0 {
		return id, false
	}
	at := w.r.IntN(n)
	all(func(one ID) {
		if at == 0 {
			id, ok = one, true
		}
		at--
	})
	return id, ok
}

func each[T any](m map[ID]T) func(func(ID)) {
	return func(do func(ID)) {
		for _, id := range slices.SortedFunc(maps.Keys(m), func(a, b ID) int { return bytes.Compare(a[:], b[:]) }) {
			do(id)
		}
	}
}

// name is that of a new session.
func (w *world) name() ID {
	w.sessions++
	return ID{byte(w.sessions), byte(w.sessions >> 8)}
}

func (w *world) act() {
	switch w.r.IntN(8) {
	case 0:
		peer, id := w.peer(), w.name()
		if !w.step(Negotiated{id, peer}) {
			w.turnedAway(peer)
			return
		}
		w.waiting[id] = peer
		w.unstored = append(w.unstored, id)
	case 1:
		if len(w.unstored) == 0 {
			return
		}
		id := w.unstored[0]
		w.unstored = w.unstored[1:]
		w.revision++
		w.records[id] = &record{revision: w.revision}
		if !w.step(Recorded{id, w.revision}) {
			require.Nil(w.t, w.records[id], "nobody can join it")
		}
	case 2:
		if id, ok := w.any(len(w.waiting), each(w.waiting)); ok && w.records[id] != nil {
			w.joins(id, w.peer())
		}
	case 3: // by its token alone: it had streams, or has some
		if id, ok := w.any(len(w.records), each(w.records)); ok {
			w.joins(id, w.peer())
		}
	case 4: // a first contact
		w.joins(w.name(), w.peer())
	case 5, 6:
		if id, ok := w.any(len(w.streams), each(w.streams)); ok {
			w.leaves(id, Left{id, 1 + w.r.IntN(3)})
		}
	default:
		w.passes(time.Duration(w.r.Int64N(int64(20 * time.Minute))))
	}
}

// passes lets time pass; the machine is woken when it wants to.
func (w *world) passes(d time.Duration) {
	end := w.now.Add(d)
	for !w.wake.IsZero() && !w.wake.After(end) {
		w.now, w.wake = w.wake, time.Time{}
		w.step(Woken{})
	}
	w.now = end
	for id := range w.streams {
		require.True(w.t, w.records[id].expires.After(w.now), "the record of a session with streams has expired")
	}
}

// Whatever happens: no record of a session with streams is deleted or expires, no more sessions
// are there than may be, nobody is turned away while others could go, and what is in the store is
// known.
func TestSimulation(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			most := 2 + r.IntN(6)
			w := &world{t: t, r: r, now: epoch,
				records: map[ID]*record{}, streams: map[ID]int{}, waiting: map[ID]string{},
				m: New(Config{Max: most, PerPeer: 1 + r.IntN(most), JoinWithin: joinWithin, Kept: 1 + r.IntN(8)})}
			for range 500 {
				w.act()
			}
			for id := range w.records {
				require.Contains(t, w.m.known(), id, "a record that nobody deletes")
			}
		})
	}
}
