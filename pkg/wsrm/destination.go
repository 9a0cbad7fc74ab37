package wsrm

import (
	"slices"
	"time"
)

// inState is where a unit of the destination is.
type inState uint8

const (
	inMissing   inState = iota
	inHeld              // kept until its message is whole, and its turn
	inDelivered         // not yet committed
	inDone
)

// inUnit is one unit above done.
type inUnit struct {
	payload []byte // of a buffer of ours, while held
	// other is, at either end of a run of held units of one message, the position of its other end. At the first unit of a delivered message: its last.
	other       uint64
	state       inState
	first, last bool
	begun       bool
}

// destination is the receiving half (RMD).
type destination struct {
	cfg   *Config
	units []inUnit // ring by position; it grows up to the window

	done      uint64 // everything up to here is done
	high      uint64 // nothing above arrived
	delivered uint64 // ordered: everything up to here was delivered, or dropped
	held      int    // octets
	hold      int    // how many they may be: Config.Hold, or less (see [Engine.Narrow])

	echo    uint64 // greatest number of a datagram
	ackAt   time.Duration
	unacked int  // datagrams since the last acknowledgement
	open    int  // messages delivered and not committed
	hurry   bool // an acknowledgement that should go at once waits for them

	closed, terminated, ended bool
	lost                      bool // this end lacks a part of the sequence: the other is told
	last                      uint64
	instance                  uint64

	refused  []Range  // units to nack, ascending
	unknown  []Range  // to be reported in the next step
	free     [][]byte // buffers for the next units out of order, spare octets in all: no more than may be held
	spare    int
	lent     [][]byte // buffers that actions of this step point to
	assembly []byte
}

func (d *destination) init(cfg *Config) {
	d.cfg = cfg
	d.units = make([]inUnit, minRing)
	d.ackAt = never
	d.hold = cfg.Hold
	d.instance = cfg.Instance
}

func (d *destination) unit(position uint64) *inUnit { return &d.units[position&uint64(len(d.units)-1)] }

// validate refuses what no honest source sends, before anything changes.
func (d *destination) validate(e *Engine, p *Packet) error {
	if d.ended {
		return nil
	}
	if e.cfg.Assurance == ExactlyOnce && p.Floor > d.done+1 {
		// The source knows more to be done than this end: a store was lost, or it is another's sequence.
		d.lost = true
		d.ackAt = e.now
		return fault(UnknownSequence)
	}
	last := d.last
	if p.Closing && d.heeds(p) {
		if d.closed && p.Last != d.last && !e.cfg.Carried || p.Last < d.high || p.Last < d.done {
			return fault(LastMessageExceeded)
		}
		last = p.Last
	}
	base := max(d.done, p.Floor-1)
	for i := range p.Units {
		n := p.Units[i].Number
		switch {
		case (p.Closing || d.closed && !e.cfg.Carried) && n > last:
			return fault(LastMessageExceeded)
		case n > base && n-base > uint64(e.cfg.Window) && !e.cfg.lossy():
			return fault(Invalid)
		case n > maxPosition-uint64(e.cfg.Window):
			return fault(Invalid)
		}
	}
	return nil
}

// heeds tells whether what a packet says of the end of the sequence counts. On carriers a source that closed may be open again in its next life: its last word counts, or a message behind that end.
func (d *destination) heeds(p *Packet) bool {
	return !d.cfg.Carried || p.Number > d.echo || len(p.Units) > 0 && p.Units[len(p.Units)-1].Number > d.last
}

// close takes in what a packet says of the end of the sequence.
func (d *destination) close(e *Engine, p *Packet) {
	switch {
	case !d.heeds(p):
	case p.Closing && (!d.closed || p.Last != d.last):
		d.closed, d.last = true, p.Last
		e.changed = true
	case !p.Closing && d.closed && d.cfg.Carried:
		d.closed = false
		e.changed = true
	}
}

// take takes in a packet that validate let pass.
func (d *destination) take(e *Engine, p *Packet) {
	if d.ended {
		d.lost = !d.terminated && !d.complete()
		d.ackAt = e.now
		return
	}
	d.close(e, p)
	soon := p.Request || p.Closing || p.Terminate || p.Number != 0 && p.Number != d.echo+1
	d.echo = max(d.echo, p.Number)
	d.unacked++
	if p.Floor > d.done+1 {
		// What the source is done with is of no interest: at-most-once gave it up; at-least-once knows it done by a life of this end before.
		if e.cfg.Carried && e.cfg.Assurance == AtMostOnce {
			e.stats.GivenUp += int64(p.Floor - 1 - d.done)
		}
		d.skip(p.Floor - 1)
		d.ready(e)
	}
	for i := range p.Units {
		u := &p.Units[i]
		if e.cfg.lossy() && u.Number > d.done+uint64(e.cfg.Window) {
			d.skip(u.Number - uint64(e.cfg.Window))
		}
		if d.seen(u.Number) {
			e.stats.Duplicates++
			soon = true
			continue
		}
		soon = !d.accept(e, u) || soon
	}
	d.advance()
	d.ackAt = min(d.ackAt, e.now+e.cfg.AckDelay)
	switch {
	case !soon && d.unacked < d.cfg.ackEvery():
	case d.open > 0:
		d.hurry = true // what is committed in a moment need not be told twice
	default:
		d.ackAt = e.now
	}
	if p.Terminate {
		d.terminate(e)
	}
}

// seen is the filter of duplicates.
func (d *destination) seen(position uint64) bool {
	return position <= d.done || position <= d.high && d.unit(position).state != inMissing
}

// complete tells whether the last message is done, at-most-once: was announced.
func (d *destination) complete() bool {
	return d.closed && (d.done == d.last || d.cfg.lossy())
}

// skip is done with everything up to a position, delivered or not.
func (d *destination) skip(to uint64) {
	steps := min(to-d.done, uint64(len(d.units)))
	for position := d.done + 1; position <= d.done+steps; position++ {
		d.drop(position)
		if u := d.unit(position); u.state == inDelivered && u.first {
			d.open--
		}
		*d.unit(position) = inUnit{}
	}
	// What is left of a message whose beginning is gone cannot become whole; its run must not point below.
	d.done = to
	d.high = max(d.high, to)
	d.delivered = max(d.delivered, to)
	for position := to + 1; position <= d.high; position++ {
		u := d.unit(position)
		if u.state != inHeld || u.first {
			break
		}
		d.drop(position)
		u.state = inDone
	}
}

// accept takes in a unit that is new, and says false if it could not be kept.
func (d *destination) accept(e *Engine, u *Unit) bool {
	d.units = ringFor(d.units, d.done, u.Number)
	if u.First && u.Last && (!d.cfg.Ordered || d.turn(u.Number)) {
		// The way of nearly all: nothing is copied.
		*d.unit(u.Number) = inUnit{first: true, last: true}
		d.high = max(d.high, u.Number)
		d.deliver(e, u.Number, u.Number, u.Payload)
		d.ready(e)
		return true
	}
	if d.cfg.Ordered && d.cfg.lossy() && u.Number <= d.delivered {
		d.unit(u.Number).state = inDone
		return true
	}
	if !d.room(u) {
		d.refuse(u.Number)
		return false
	}
	run := d.join(u)
	d.high = max(d.high, u.Number)
	if d.cfg.Ordered && !d.cfg.lossy() {
		d.ready(e)
	} else if d.whole(run) {
		d.deliverHeld(e, run)
	}
	return true
}

// turn tells whether a message that begins at a position may be delivered now.
func (d *destination) turn(position uint64) bool {
	if d.cfg.lossy() {
		return position > d.delivered
	}
	return position == d.delivered+1
}

// deliver hands a message over.
func (d *destination) deliver(e *Engine, first, last uint64, message []byte) {
	state := inDelivered
	if e.cfg.lossy() {
		state = inDone
		e.changed = true
	} else {
		d.open++
	}
	for position := first; position <= last; position++ {
		d.unit(position).state = state
	}
	d.unit(first).other = last
	d.delivered = max(d.delivered, last)
	d.pass()
	e.act(Action{Kind: Deliver, Number: first, Count: last - first + 1, Message: message})
}

// advance moves done over what is.
func (d *destination) advance() {
	for d.done < d.high && d.unit(d.done+1).state == inDone {
		d.done++
		*d.unit(d.done) = inUnit{}
	}
	d.delivered = max(d.delivered, d.done)
	d.pass()
	for len(d.refused) > 0 && d.refused[0].First <= d.done {
		if d.refused[0].Last > d.done {
			d.refused[0].First = d.done + 1
			break
		}
		d.refused = slices.Delete(d.refused, 0, 1)
	}
}

// pass moves delivered over what is done already.
func (d *destination) pass() {
	for d.delivered < d.high && d.unit(d.delivered+1).state == inDone {
		d.delivered++
	}
}

// outstanding gives the first unit of a message that was delivered and is not committed.
func (d *destination) outstanding(first uint64) (*inUnit, bool) {
	if first <= d.done || first > d.high {
		return nil, false
	}
	u := d.unit(first)
	return u, u.state == inDelivered && u.first
}

// begun notes that the handler of a message is about to run.
func (e *Engine) begun(first uint64) error {
	u, ok := e.in.outstanding(first)
	if !ok || u.begun {
		return fault(Misuse)
	}
	u.begun = true
	e.changed = true
	return nil
}

// committed is done with a message, and sends its reply.
func (e *Engine) committed(first uint64, reply []byte) error {
	d := &e.in
	u, ok := d.outstanding(first)
	if !ok {
		return fault(Misuse)
	}
	if reply != nil {
		if err := e.send(reply); err != nil {
			return err
		}
	}
	last := u.other
	for position := first; position <= last; position++ {
		d.unit(position).state = inDone
	}
	done := d.done
	d.advance()
	e.changed = true
	d.open--
	switch {
	case d.open == 0 && d.hurry, d.complete():
		d.ackAt = e.now
	case d.done > done:
		d.ackAt = min(d.ackAt, e.now+e.cfg.AckDelay)
	}
	return nil
}
