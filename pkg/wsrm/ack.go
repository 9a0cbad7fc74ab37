package wsrm

// makeAck fills in an acknowledgement of what arrived; its ranges are the lowest, where holes keep everything else waiting.
func (e *Engine) makeAck(a *Ack) {
	d := &e.in
	a.Instance, a.Done, a.Echo = d.instance, d.done, d.echo
	a.Final, a.Terminated, a.Unknown = d.complete(), d.terminated, d.lost
	a.Ranges, a.Nacks = a.Ranges[:0], a.Nacks[:0]
	for position := d.done + 1; position <= d.high && len(a.Ranges) < maxRanges; position++ {
		if d.unit(position).state == inMissing {
			continue
		}
		if n := len(a.Ranges); n > 0 && a.Ranges[n-1].Last == position-1 {
			a.Ranges[n-1].Last = position
		} else {
			a.Ranges = append(a.Ranges, Range{position, position})
		}
	}
	a.Nacks = append(a.Nacks, d.refused...)
}

// acknowledged: an acknowledgement is on its way.
func (d *destination) acknowledged(e *Engine) {
	e.stats.AcksSent++
	d.ackAt, d.unacked, d.hurry = never, 0, false
	d.refused = d.refused[:0]
	d.lost = false
}

// sendAck sends an acknowledgement alone.
func (e *Engine) sendAck() {
	p := e.packet()
	p.HasAck = true
	e.makeAck(&p.Ack)
	// The ranges always fit: there are few, and they are short together.
	for e.codec.ackLen(&p.Ack)+1 > e.cfg.Datagram {
		p.Ack.Nacks = p.Ack.Nacks[:len(p.Ack.Nacks)/2]
	}
	e.in.acknowledged(e)
	e.stats.Sent++
	e.act(Action{Kind: Transmit, Packet: p})
}

// ackLen is what an acknowledgement takes in a datagram, in octets.
func (c Codec) ackLen(a *Ack) int {
	sequence, number := c.split(a.Done)
	n := 1 + uvarintLen(a.Instance) + uvarintLen(number) + uvarintLen(a.Echo)
	if sequence > 0 {
		n += uvarintLen(sequence)
	}
	for _, ranges := range [...][]Range{a.Ranges, a.Nacks} {
		if len(ranges) == 0 {
			continue
		}
		n += uvarintLen(uint64(len(ranges)))
		done := a.Done
		for _, r := range ranges {
			n += uvarintLen(r.First-done-1) + uvarintLen(r.Last-r.First)
			done = r.Last
		}
	}
	return n
}
