package capture

import (
	"cmp"
	"slices"
)

// sequence is the exchanges that one end began on one lane, or over one HTTP connection: those with numbers in sending order.
type sequence struct {
	flow, origin int
	lane         uint64
}

// number gives exchanges their numbers: sequences are merged by time; in each the numbers of exchanges that were not seen stay free.
func (dec *decoder) number() {
	type exchange struct {
		messages []*Decoded
		id       uint64
	}
	all := map[sequence][]*exchange{}
	var order []sequence
	slices.SortStableFunc(dec.result.Messages, func(a, b *Decoded) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Packet, b.Packet))
	})
	for _, m := range dec.result.Messages {
		if m.negotiation() {
			continue
		}
		key := sequence{m.flow, m.origin, m.Lane}
		list, seen := all[key]
		if !seen {
			order = append(order, key)
		}
		i := slices.IndexFunc(list, func(x *exchange) bool { return x.id == m.Exchange })
		if i < 0 {
			i = len(list)
			all[key] = append(list, &exchange{id: m.Exchange})
		}
		all[key][i].messages = append(all[key][i].messages, m)
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b *exchange) int { return cmp.Compare(a.id, b.id) })
	}
	last := map[sequence]uint64{}
	for n := 0; ; {
		var next *sequence
		for i := range order {
			if k := &order[i]; len(all[*k]) > 0 && (next == nil || all[*k][0].messages[0].First.Before(all[*next][0].messages[0].First)) {
				next = k
			}
		}
		if next == nil {
			return
		}
		x := all[*next][0]
		all[*next] = all[*next][1:]
		if n++; x.messages[0].HHFR {
			n += int(min(x.id-last[*next]-1, maxHole))
			last[*next] = x.id
		}
		for _, m := range x.messages {
			m.Number = n
		}
	}
}

// maxHole bounds how many numbers are left free for exchanges that were not seen.
const maxHole = 1 << 20
