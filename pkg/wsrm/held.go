package wsrm

import "slices"

// recycle takes back what the actions of the step before pointed to.
func (d *destination) recycle() {
	for _, b := range d.lent {
		if d.spare+cap(b) <= d.hold {
			d.spare += cap(b)
			d.free = append(d.free, b)
		}
	}
	d.lent = d.lent[:0]
	d.assembly = d.assembly[:0]
}

// drop gives the buffer of a held unit back.
func (d *destination) drop(position uint64) {
	u := d.unit(position)
	if u.state == inHeld {
		d.held -= len(u.payload)
		d.lent = append(d.lent, u.payload)
		u.payload = nil
	}
}

// Held tells how many octets the destination has memory for: of what it cannot deliver yet, and to spare.
func (e *Engine) Held() int { return e.in.held + e.in.spare }

// Narrow has the destination keep no more than so many octets of what it cannot deliver yet, of at most [Config.Hold], when it takes in more: for who has many engines, and memory for some. What is above stays until something
// before it comes; what is not kept is sent again.
func (e *Engine) Narrow(octets int) {
	d := &e.in
	d.hold = min(octets, d.cfg.Hold)
	if d.spare > d.hold {
		d.free, d.spare = nil, 0
	}
}

// room makes room for a unit that is to be held, at the cost of those behind it: what comes first is needed first.
func (d *destination) room(u *Unit) bool {
	for position := d.high; d.held+len(u.Payload) > d.hold && position > u.Number; position-- {
		last := d.unit(position)
		if last.state != inHeld {
			continue
		}
		if first := last.other; first != position {
			d.unit(first).other = position - 1
			d.unit(position - 1).other = first
		}
		d.drop(position)
		*last = inUnit{}
		d.refuse(position)
	}
	return d.held+len(u.Payload) <= d.hold
}

// join keeps a unit, and joins it with its neighbours to a run of one message. A unit that contradicts them belongs to a message that nobody can put together; it is kept, alone.
func (d *destination) join(u *Unit) (run Range) {
	n := u.Number
	*d.unit(n) = inUnit{payload: d.keep(u.Payload), state: inHeld, first: u.First, last: u.Last, other: n}
	run = Range{n, n}
	if before := d.unit(n - 1); n-1 > d.done && before.state == inHeld && !u.First && !before.last {
		run.First = before.other
	}
	if after := d.unit(n + 1); n < d.high && after.state == inHeld && !u.Last && !after.first {
		run.Last = after.other
	}
	d.unit(run.First).other = run.Last
	d.unit(run.Last).other = run.First
	return run
}

// keep copies a payload into a buffer of ours.
func (d *destination) keep(payload []byte) []byte {
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
func (d *destination) refuse(position uint64) {
	i, found := slices.BinarySearchFunc(d.refused, position, func(r Range, p uint64) int {
		switch {
		case r.Last+1 < p:
			return -1
		case r.First > p+1:
			return 1
		}
		return 0
	})
	if found {
		d.refused[i].First, d.refused[i].Last = min(d.refused[i].First, position), max(d.refused[i].Last, position)
		if i+1 < len(d.refused) && d.refused[i+1].First <= d.refused[i].Last+1 {
			d.refused[i].Last = d.refused[i+1].Last
			d.refused = slices.Delete(d.refused, i+1, i+2)
		}
	} else if len(d.refused) < maxRanges {
		d.refused = slices.Insert(d.refused, i, Range{position, position})
	}
}

// whole tells whether a run is a message.
func (d *destination) whole(run Range) bool {
	return d.unit(run.First).first && d.unit(run.Last).last
}

// ready delivers what is held and whose turn it is.
func (d *destination) ready(e *Engine) {
	if !d.cfg.Ordered || d.cfg.lossy() {
		return
	}
	for d.delivered < d.high {
		first := d.delivered + 1
		u := d.unit(first)
		if u.state != inHeld || !u.first || !d.unit(u.other).last {
			return
		}
		d.deliverHeld(e, Range{first, u.other})
	}
}

// deliverHeld delivers a message of held units.
func (d *destination) deliverHeld(e *Engine, run Range) {
	if d.cfg.Ordered && !d.turn(run.First) {
		for position := run.First; position <= run.Last; position++ {
			d.drop(position)
			d.unit(position).state = inDone
		}
		return
	}
	message := d.unit(run.First).payload
	if run.First != run.Last {
		from := len(d.assembly)
		for position := run.First; position <= run.Last; position++ {
			d.assembly = append(d.assembly, d.unit(position).payload...)
		}
		message = d.assembly[from:len(d.assembly):len(d.assembly)]
	}
	for position := run.First; position <= run.Last; position++ {
		d.drop(position)
	}
	d.deliver(e, run.First, run.Last, message)
}
