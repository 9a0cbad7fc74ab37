package capture

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// candidate is a sync frame found by its mark.
type candidate struct {
	at   int64 // in the direction
	sync frame.Sync
}

// syncs finds all frames in the runs that look like syncs.
func syncs(runs []flow.Run) (found []candidate) {
	for i := range runs {
		r := &runs[i]
		for from := 0; len(found) < maxCandidates; {
			at, s, ok := frame.FindSync(r.Data, from)
			if !ok {
				break
			}
			found = append(found, candidate{r.Offset + int64(at), s})
			from = at + 1
		}
	}
	return found
}

// unsynced names connections whose octets look like frames of a stream, of which neither a hello nor a sync was
// captured. A guess, for people; "" for others.
func unsynced(f *flow.Flow) string {
	octets, looks := 0, false
	for _, d := range f.Dirs {
		for i := range d.Runs {
			octets += len(d.Runs[i].Data)
			looks = looks || framed(&d.Runs[i])
		}
	}
	if !looks {
		return ""
	}
	return fmt.Sprintf("connections with what may be an hhfr stream (no sync frame in %d octets; "+
		"the next is due 64 KiB, 1,024 messages or 15 minutes after the last)", octets)
}

// framed reports whether a run is a row of whole frames from the beginning of one of its first packets on.
func framed(r *flow.Run) bool {
	const packets, least = 20, 3
	for _, m := range r.Marks[:min(len(r.Marks), packets)] {
		at, frames, messages := m.At, 0, 0
		for at < len(r.Data) {
			f, n, err := frame.Parse(r.Data[at:], int64(at), 0)
			if err != nil || n == 0 {
				break
			}
			if _, skipped := f.(frame.Skipped); skipped {
				break // any text would do
			}
			if _, ok := f.(frame.Data); ok {
				messages++
			}
			frames++
			at += n
		}
		if at == len(r.Data) && frames >= least && messages > 0 {
			return true
		}
	}
	return false
}

// trust decides, for a direction whose beginning is missing, which sync word is the stream's: the one most candidates agree on, at least two, one of a session that the store names, or the only one there is.
func (d *direction) trust(runs []flow.Run, named func(session [16]byte) bool) bool {
	type claim struct {
		word   [8]byte
		origin frame.Origin
		base   int64
	}
	votes := map[claim]int{}
	for _, c := range syncs(runs) {
		base := c.at - int64(c.sync.Offset)
		votes[claim{c.sync.Word, c.sync.Origin(), base}]++
	}
	best, most := claim{}, 0
	for _, c := range slices.SortedFunc(maps.Keys(votes), func(a, b claim) int { return int(min(1, max(-1, a.base-b.base))) }) {
		n := votes[c]
		if n == 1 && len(votes) > 1 && !named(c.origin.Session) {
			continue
		}
		if n > most {
			best, most = c, n
		}
	}
	if most == 0 {
		return false
	}
	d.known, d.word, d.origin, d.base = true, best.word, best.origin, best.base
	return true
}

// lose forgets what cannot be followed over missing octets.
func (d *direction) lose(why string) {
	for _, g := range d.open {
		g.state, g.why = Incomplete, why
	}
	d.following = false
	clear(d.open)
	d.uncovered = nil
}

// resync looks for the next sync of the stream from index from on, and gives its index, or the end.
func (d *direction) resync(r *flow.Run, from int) int {
	for {
		at, s, ok := frame.FindSync(r.Data, from)
		if !ok {
			return len(r.Data)
		}
		if s.Word == d.word && s.Origin() == d.origin && r.Offset+int64(at)-d.base == int64(s.Offset) {
			return at
		}
		from = at + 1
	}
}

// sync checks what came since the one before, and goes on from this one.
func (d *direction) sync(f frame.Sync, offset int64) error {
	if f.Word != d.word || f.Origin() != d.origin || f.Offset != uint64(offset) {
		return errors.New("a sync frame that is not of this stream, or not at its place")
	}
	if d.following {
		right, known := d.checks.Agree(f)
		d.cover(right && d.stand(f.Shapes), known, offset)
	}
	if d.following {
		d.checks.Next(f)
	} else {
		d.checks.Seed(f)
		d.following = true
	}
	d.numbering.Sync(f)
	d.epoch++
	before := d.table
	d.table = make(map[uint64]named, len(f.Shapes))
	for _, s := range f.Shapes {
		n := named{name: s.Name}
		if was, ok := before[s.Number]; ok && was.name == n.name {
			n = was
		}
		d.table[s.Number] = n
	}
	return nil
}

// stand reports whether numbers stand for the shapes that a sync lists.
func (d *direction) stand(shapes []frame.Announced) bool {
	for _, s := range shapes {
		if n, ok := d.table[s.Number]; ok && n.name != s.Name {
			return false
		}
	}
	return true
}

// cover settles the state of the messages since the last sync. Not known: the check could not be told, as the name of a shape is missing.
func (d *direction) cover(right, known bool, offset int64) {
	if !d.following {
		return
	}
	if right && !known {
		d.uncovered = nil
		d.problem(offset, "a shape was announced that nothing here names: messages since the sync before stay unverified")
		return
	}
	for _, g := range d.uncovered {
		if g.state = Verified; !right {
			g.state, g.why = Withdrawn, "its check is wrong"
		}
	}
	if d.uncovered = nil; !right {
		d.problem(offset, "check does not agree: messages since the sync before are withdrawn")
		d.lose("check does not agree")
	}
}
