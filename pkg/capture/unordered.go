package capture

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// isUnordered tells whether a stream is one whose messages come each for itself (docs/wire-format.md, section 13), by what is there of its directions: the responder's hello decides, else a sync frame, else what the initiator asked for.
func isUnordered(dirs ...[]flow.Run) bool {
	asked := false
	for _, runs := range dirs {
		if len(runs) == 0 || !frame.BeginsStream(runs[0].Data) {
			continue
		}
		if f, n, err := frame.Parse(runs[0].Data, 0, 0); err == nil && n > 0 {
			h := f.(frame.Hello)
			if h.Responder {
				return h.Unordered
			}
			asked = h.Unordered
		}
	}
	for _, runs := range dirs {
		if found := syncs(runs); len(found) > 0 {
			return found[0].sync.Offset == 0
		}
	}
	return asked
}

// unorderedMessages are the messages of a sequence that are whole, as one run: those first that make others readable. gaps and missing count the units between them that are not there.
func (u *units) unorderedMessages() (runs []flow.Run, gaps, missing int64) {
	type message struct {
		from, to uint64
		class    int
	}
	var whole []message
	next, first := uint64(0), uint64(0) // the unit expected; where the message at hand begins, 0: there is none
	for _, n := range slices.Sorted(maps.Keys(u.there)) {
		if n != next {
			if first = 0; next != 0 {
				gaps++
				missing += int64(n - next)
			}
		}
		next = n + 1
		one := u.there[n]
		if one.first {
			first = n
		}
		if one.last && first != 0 {
			whole = append(whole, message{first, n, class(u.there[first].octets)})
			first = 0
		}
	}
	slices.SortStableFunc(whole, func(a, b message) int { return cmp.Compare(a.class, b.class) })
	var r flow.Run
	if _, begins := u.there[1]; !begins {
		r.Offset, r.GapBefore = 1, 1
	}
	for _, m := range whole {
		for n := m.from; n <= m.to; n++ {
			one := u.there[n]
			if len(one.octets) > 0 {
				one.mark.At = len(r.Data)
				r.Marks = append(r.Marks, one.mark)
				r.Data = append(r.Data, one.octets...)
			}
		}
	}
	if len(r.Data) == 0 {
		return nil, gaps, missing
	}
	return []flow.Run{r}, gaps, missing
}

// class orders messages of an unordered direction by the kind of their first frame: hello, sync frames, shapes, all others.
func class(octets []byte) int {
	if len(octets) == 0 {
		return len(classes)
	}
	if i := slices.Index(classes, frame.Kind(octets[0])); i >= 0 {
		return i
	}
	return len(classes)
}

var classes = []frame.Kind{frame.KindHello, frame.KindSync, frame.KindShape}

// beginsWithSync tells that a direction begins with a sync frame of an unordered one, as no other does by chance.
func (d *direction) beginsWithSync(runs []flow.Run) bool {
	at, _, ok := frame.FindSync(runs[0].Data, 0)
	return d.unordered && ok && at == 0
}

// dataUnordered takes a data frame of an unordered direction. Its message is verified when it is whole, by its own check.
func (d *direction) dataUnordered(f frame.Data, n int, offset int64, r *flow.Run, at int) error {
	key := f.Key()
	g := d.open[key]
	if g == nil {
		g = &gathered{key: key, stages: d.stages, first: r.MarkAt(at), offset: offset}
		d.open[key] = g
		d.messages = append(d.messages, g)
	}
	g.oneWay = g.oneWay || f.OneWay
	g.wire += int64(n)
	g.last = r.MarkAt(at + n - 1)
	ready, err := d.fragments.Take(f, offset)
	switch {
	case errors.Is(err, &frame.Error{Code: frame.BadSum}):
		g.state, g.why = Withdrawn, "its check is wrong"
		delete(d.open, key)
		d.problem(offset, "%v", err)
		return nil
	case errors.Is(err, &frame.Error{Code: frame.TooLarge}):
		d.problem(offset, "%v", err)
		return nil
	case err != nil:
		return err
	}
	for i := range ready {
		f := &ready[i]
		parts, err := g.cut.Cut(f, offset)
		if err != nil {
			return err
		}
		g.add(&parts, d.table)
		if f.Last {
			g.state = Verified
			delete(d.open, key)
		}
	}
	return nil
}

// syncUnordered takes what numbers stand for from a sync frame. It changes nothing of what is known.
func (d *direction) syncUnordered(f frame.Sync) {
	d.following, d.stages = true, f.Stages
	for _, s := range f.Shapes {
		if _, known := d.table[s.Number]; !known {
			d.table[s.Number] = named{name: s.Name}
		}
	}
}

// allThere compares the frames of an unordered direction with what its close frame says.
func (d *direction) allThere(offset int64) {
	if d.farewell != nil && d.hello != nil && d.farewell.Messages != d.frames {
		d.problem(offset, "%d frames, of %d that there were", d.frames, d.farewell.Messages)
	}
}
