package frame

import (
	"slices"

	"github.com/hhfr/hhfr/internal/few"
)

// Numbering is what a direction remembers of lanes and exchanges, so that a data frame need not
// name them (section 5, "Lane" and "Exchange"; section 6). Sender, receiver and decoder of a
// capture each keep one per direction, and tell it of every data and sync frame, in order. The zero
// value is that of a direction after its hello. It grows by a lane for each that data names, and
// shrinks to those listed with every sync.
type Numbering struct {
	lanes  few.Map[uint64, laneState]
	before Key
	any    bool
	synced bool
	ticks  uint64
	since  uint64 // ticks at the last sync
	active int    // lanes on which messages began since then
}

// laneState has the exchanges that were begun last. It has no array: it is passed in registers.
type laneState struct{ request, reply, tick uint64 }

// next is the exchange of a first fragment that names none, on a lane in this state; ok is false
// where it must name it.
func (n *Numbering) next(l laneState, known, reply bool) (exchange uint64, ok bool) {
	if exchange = l.request; reply {
		exchange = l.reply
	}
	return exchange + 1, known || !n.synced
}

// Resolve fills in the lane, the exchange and, for a later fragment that names no exchange, R of a
// frame as parsed (whose own R is not looked at there). at is the frame's offset. Its errors have
// the code [BadNumber].
func (n *Numbering) Resolve(f *Data, at int64) error {
	if !f.NamesLane {
		f.Lane = n.before.Lane
	}
	if !f.First {
		if !f.NamesExchange {
			if !n.any {
				return fault(BadNumber, at, "later fragment names no exchange, and no data frame stands before it")
			}
			f.Exchange, f.Reply = n.before.Exchange, n.before.Reply
		}
		n.before, n.any = f.Key(), true
		return nil
	}
	l, known := n.lanes.Find(f.Lane)
	if !f.NamesExchange {
		x, ok := n.next(l, known, f.Reply)
		if !ok || x == 0 {
			return fault(BadNumber, at, "first fragment on lane %d must name its exchange", f.Lane)
		}
		f.Exchange = x
	}
	if !f.Reply && f.Exchange <= l.request {
		return fault(BadNumber, at, "request %d on lane %d after %d", f.Exchange, f.Lane, l.request)
	}
	if f.Place.Number != 0 && f.Lane != 0 {
		return fault(BadNumber, at, "a message of a sequence on lane %d", f.Lane)
	}
	n.begins(f, l)
	return nil
}

// Choose decides what a frame whose Lane, Exchange and Reply are set must name, and remembers it:
// the sender's side of [Numbering.Resolve].
func (n *Numbering) Choose(f *Data) {
	f.NamesLane = f.Lane != n.before.Lane
	if !f.First {
		f.NamesExchange = !n.any || n.before != f.Key()
		f.NamesLane = f.NamesLane && f.NamesExchange
		n.before, n.any = f.Key(), true
		return
	}
	l, known := n.lanes.Find(f.Lane)
	x, ok := n.next(l, known, f.Reply)
	f.NamesExchange = !ok || x != f.Exchange
	n.begins(f, l)
}

// begins remembers a first fragment, on a lane in this state.
func (n *Numbering) begins(f *Data, l laneState) {
	n.before, n.any = f.Key(), true
	if l.tick <= n.since {
		n.active++
	}
	n.ticks++
	if l.tick = n.ticks; f.Reply {
		l.reply = f.Exchange
	} else {
		l.request = f.Exchange
	}
	n.lanes.Put(f.Lane, l)
}

// Len is the number of lanes that a sync would list.
func (n *Numbering) Len() int { return n.lanes.Len() }

// Active is the number of lanes on which messages began since the last sync.
func (n *Numbering) Active() int { return n.active }

// Lanes lists at most most lanes for a sync, ascending: those that began a message last.
func (n *Numbering) Lanes(most int) []LaneNumbers {
	all := make([]LaneNumbers, 0, n.lanes.Len())
	for lane, l := range n.lanes.All {
		all = append(all, LaneNumbers{lane, l.request, l.reply})
	}
	if len(all) > most {
		slices.SortStableFunc(all, func(a, b LaneNumbers) int {
			return order(n.lanes.Get(a.Lane).tick > n.lanes.Get(b.Lane).tick)
		})
		all = all[:most]
	}
	slices.SortStableFunc(all, func(a, b LaneNumbers) int { return order(a.Lane < b.Lane) })
	return all
}

// Sync goes on from a sync frame: with the lanes it lists and no others, and with no data frame
// before. It seeds a decoder that begins there, too.
func (n *Numbering) Sync(s Sync) {
	var lanes few.Map[uint64, laneState]
	for _, l := range s.Lanes {
		lanes.Put(l.Lane, laneState{request: l.Request, reply: l.Reply, tick: n.lanes.Get(l.Lane).tick})
	}
	*n = Numbering{lanes: lanes, synced: true, ticks: n.ticks, since: n.ticks}
}
