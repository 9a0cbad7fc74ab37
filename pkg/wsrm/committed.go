package wsrm

import (
	"slices"

	"github.com/hhfr/hhfr/internal/window"
)

// Committed returns the numbers of the peer's messages that are done, as ranges of first and last
// numbers, ascending and with gaps between them. What it returned once it returns for ever, also
// after a crash; what was done in the last step counts from the next [Wake] on.
func (m *machine) Committed() [][2]uint64 {
	var list [][2]uint64
	for _, r := range m.in.Committed() {
		list = append(list, [2]uint64{r.First, r.Last})
	}
	return list
}

// IsDone reports whether a message of the peer is done.
func (m *machine) IsDone(number uint64) bool {
	return slices.ContainsFunc(m.in.Committed(), func(r window.Range) bool {
		return r.First <= number && number <= r.Last
	})
}

// Acknowledgement makes an event of what a peer acknowledges in another form than by its engine:
// ranges of numbers that are done there, ascending and with gaps between them, and numbers that it
// lacks. Lost: it does not know the sequence.
func Acknowledgement(ranges [][2]uint64, lacks []uint64, lost bool) Event {
	a := window.AckPacket{Unknown: lost}
	for len(ranges) > 0 && ranges[0][0] == a.Done+1 {
		a.Done, ranges = ranges[0][1], ranges[1:]
	}
	for _, r := range ranges {
		a.Ranges = extend(a.Ranges, r[0], r[1])
	}
	lacks = slices.Sorted(slices.Values(lacks))
	for _, n := range slices.Compact(lacks) {
		if n > a.Done {
			a.Nacks = extend(a.Nacks, n, n)
		}
	}
	p := window.Packet{HasAck: true, Ack: a}
	return Event{Kind: Heard, Message: p.Append(nil)}
}

// extend appends a range above all that are there; what is too many for a packet is left out.
func extend(list []window.Range, first, last uint64) []window.Range {
	switch n := len(list); {
	case n > 0 && list[n-1].Last+1 == first:
		list[n-1].Last = last
	case n < window.MaxRanges:
		list = append(list, window.Range{First: first, Last: last})
	}
	return list
}

// HasArrived reports whether the peer said that it has a message, though not all before it.
func (m *machine) HasArrived(number uint64) bool { return m.out.HasArrived(number) }
