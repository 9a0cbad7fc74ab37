package window

// FillAck fills in an acknowledgement of what arrived, and whether that is all. Its ranges are the
// lowest, where holes keep everything else waiting.
func (d *Filter) FillAck(a *AckPacket) {
	a.Instance, a.Done, a.Echo = d.Instance, d.Done, d.Echo
	a.Final, a.Terminated, a.Unknown = d.Complete(), d.Terminated, d.lacks
	a.Ranges, a.Nacks = a.Ranges[:0], a.Nacks[:0]
	for number := d.Done + 1; number <= d.high && len(a.Ranges) < MaxRanges; number++ {
		if d.unit(number).state == missing {
			continue
		}
		if n := len(a.Ranges); n > 0 && a.Ranges[n-1].Last == number-1 {
			a.Ranges[n-1].Last = number
		} else {
			a.Ranges = append(a.Ranges, Range{number, number})
		}
	}
	a.Nacks = append(a.Nacks, d.refused...)
}

// Acked notes that an acknowledgement is on its way.
func (d *Filter) Acked() {
	d.AckAt, d.unacked, d.hurry = Never, 0, false
	d.refused = d.refused[:0]
	d.lacks = false
}

// Committed are the units that are done, also those above the first one that is not.
func (d *Filter) Committed() (list []Range) {
	if d.Done > 0 {
		list = append(list, Range{1, d.Done})
	}
	for number := d.Done + 1; number <= d.high; number++ {
		switch n := len(list); {
		case d.unit(number).state != done:
		case n > 0 && list[n-1].Last == number-1:
			list[n-1].Last = number
		default:
			list = append(list, Range{number, number})
		}
	}
	return list
}
