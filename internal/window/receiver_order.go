package window

import "slices"

// Recycle takes back what the deliveries of the step before pointed to.
func (d *Filter) Recycle() {
	for _, b := range d.lent {
		if d.spare+cap(b) <= d.hold {
			d.spare += cap(b)
			d.free = append(d.free, b)
		}
	}
	d.lent = d.lent[:0]
	d.assembly = d.assembly[:0]
	d.Deliveries = d.Deliveries[:0]
}

// drop gives the buffer of a held unit back.
func (d *Filter) drop(number uint64) {
	u := d.unit(number)
	if u.state == held {
		d.held -= len(u.payload)
		d.lent = append(d.lent, u.payload)
		u.payload = nil
	}
}

// Held is how many bytes the receiver has memory for: of what it cannot deliver yet, and to spare.
func (d *Filter) Held() int { return d.held + d.spare }

// Narrow has the receiver keep no more than so many bytes of what it cannot deliver yet, of at most
// those of its configuration, when it takes in more: for an owner of many, with memory for some.
// What is above stays until something before it comes; what is not kept is sent again.
func (d *Filter) Narrow(bytes int) {
	d.hold = min(bytes, d.cfg.Hold)
	if d.spare > d.hold {
		d.free, d.spare = nil, 0
	}
}

// fits makes a unit that is to be held fit, at the cost of those after it: what comes first is
// needed first.
func (d *Filter) fits(u *Unit) bool {
	for number := d.high; d.held+len(u.Payload) > d.hold && number > u.Number; number-- {
		last := d.unit(number)
		if last.state != held {
			continue
		}
		if first := last.other; first != number {
			d.unit(first).other = number - 1
			d.unit(number - 1).other = first
		}
		d.drop(number)
		*last = receivedUnit{}
		d.refuse(number)
	}
	return d.held+len(u.Payload) <= d.hold
}

// join keeps a unit, and joins it with its neighbors to a run of one message. A unit that
// contradicts them belongs to a message that nobody can put together; it is kept, alone.
func (d *Filter) join(u *Unit) (run Range) {
	n := u.Number
	*d.unit(n) = receivedUnit{payload: d.keep(u.Payload), state: held, first: u.First, last: u.Last, other: n}
	run = Range{n, n}
	if before := d.unit(n - 1); n-1 > d.Done && before.state == held && !u.First && !before.last {
		run.First = before.other
	}
	if after := d.unit(n + 1); n < d.high && after.state == held && !u.Last && !after.first {
		run.Last = after.other
	}
	d.unit(run.First).other = run.Last
	d.unit(run.Last).other = run.First
	return run
}

// keep copies a payload into a buffer of ours.
func (d *Filter) keep(payload []byte) []byte {
	var b []byte
	if n := len(d.free); n > 0 {
		b, d.free = d.free[n-1], d.free[:n-1]
		d.spare -= cap(b)
	} else {
		b = make([]byte, 0, len(payload))
	}
	d.held += len(payload)
	return append(b[:0], payload...)
}

// refuse notes a unit that could not be kept.
func (d *Filter) refuse(number uint64) {
	i, found := slices.BinarySearchFunc(d.refused, number, func(r Range, n uint64) int {
		switch {
		case r.Last+1 < n:
			return -1
		case r.First > n+1:
			return 1
		}
		return 0
	})
	if found {
		r := &d.refused[i]
		r.First, r.Last = min(r.First, number), max(r.Last, number)
		if i+1 < len(d.refused) && d.refused[i+1].First <= r.Last+1 {
			r.Last = d.refused[i+1].Last
			d.refused = slices.Delete(d.refused, i+1, i+2)
		}
	} else if len(d.refused) < MaxRanges {
		d.refused = slices.Insert(d.refused, i, Range{number, number})
	}
}

// ready delivers what is held and whose turn it is.
func (d *Filter) ready() {
	if !d.cfg.Ordered {
		return
	}
	for d.delivered < d.high {
		first := d.delivered + 1
		u := d.unit(first)
		if u.state != held || !u.first || !d.unit(u.other).last {
			return
		}
		d.deliverHeld(Range{first, u.other})
	}
}

// deliverHeld delivers a message of held units.
func (d *Filter) deliverHeld(run Range) {
	message := d.unit(run.First).payload
	if run.First != run.Last {
		from := len(d.assembly)
		for number := run.First; number <= run.Last; number++ {
			d.assembly = append(d.assembly, d.unit(number).payload...)
		}
		message = d.assembly[from:len(d.assembly):len(d.assembly)]
	}
	for number := run.First; number <= run.Last; number++ {
		d.drop(number)
	}
	d.deliver(run, message)
}
