package window

import (
	"slices"
	"time"
)

// Never is a moment that does not come.
const Never = time.Duration(1<<63 - 1)

// receivedState is where a unit of the receiver is.
type receivedState uint8

const (
	missing   receivedState = iota
	held                    // kept until its message is whole, and its turn
	delivered               // not yet committed
	done
)

// receivedUnit is one unit above Done.
type receivedUnit struct {
	payload []byte // of a buffer of ours, while held
	// other is, at either end of a run of held units of one message, the number of its other end.
	// At the first unit of a delivered message: its last.
	other       uint64
	state       receivedState
	first, last bool
	begun       bool
}

// ReceiverConfig is what a receiver works by.
type ReceiverConfig struct {
	// Window is how many units above Done are taken, a power of two; Hold how many bytes of them
	// that cannot be delivered yet.
	Window, Hold int
	// Ordered delivers in the order of the numbers.
	Ordered bool
	// Strict refuses packets of a sender that is done with more than this end: a store was lost, or
	// it is another sequence. Else those units are passed over.
	Strict bool
	// Reopens: a sender that closed may be open again in its next life; its last word counts, or a
	// message above that end.
	Reopens bool
	// AckDelay is how long an acknowledgement waits for company, AckEvery how many packets may go
	// without one.
	AckDelay time.Duration
	AckEvery int
}

// Delivery is a message, of Count units from Number on.
type Delivery struct {
	Number, Count uint64
	Message       []byte
}

// Filter is the receiving half of a sequence (RMD): the filter of duplicates, order, and what is
// to be acknowledged. Its fields are for reading, but for Instance, Changed and Deliveries.
type Filter struct {
	Instance uint64
	// Changed: something changed that must outlive a crash.
	Changed bool
	// Deliveries are the messages delivered since the last Recycle.
	Deliveries []Delivery

	Done uint64 // everything up to here is done
	Echo uint64 // greatest number of a packet
	// AckAt is when an acknowledgement is due.
	AckAt time.Duration
	// Duplicates counts units that arrived again, Skipped those that the sender was done with
	// first.
	Duplicates, Skipped int64
	Terminated, Ended   bool

	cfg       ReceiverConfig
	units     []receivedUnit // ring by number; it grows up to the window
	high      uint64         // nothing above arrived
	delivered uint64         // ordered: everything up to here was delivered, or dropped
	held      int            // bytes
	hold      int            // how many they may be: the configuration's, or less (see [Filter.Narrow])

	unacked int  // packets since the last acknowledgement
	open    int  // messages delivered and not committed
	hurry   bool // an acknowledgement that should go at once waits for them

	closed bool
	last   uint64 // of all, if closed
	lacks  bool   // this end lacks a part of the sequence: the peer is told

	refused []Range // units to nack, ascending
	// free are buffers for the next units out of order, spare bytes in all: no more than may be
	// held.
	free     [][]byte
	spare    int
	lent     [][]byte // buffers that deliveries of this step point to
	assembly []byte
}

// NewReceiver makes one to which nothing arrived yet.
func NewReceiver(cfg ReceiverConfig) Filter {
	return Filter{cfg: cfg, units: make([]receivedUnit, minRing), AckAt: Never, hold: cfg.Hold}
}

func (d *Filter) unit(number uint64) *receivedUnit { return &d.units[number&uint64(len(d.units)-1)] }

// Validate refuses what no honest sender sends, before anything changes. Errors: UnknownSequence,
// LastMessageExceeded, Invalid.
func (d *Filter) Validate(now time.Duration, p *Packet) error {
	if d.Ended {
		return nil
	}
	if d.cfg.Strict && p.Floor > d.Done+1 {
		d.lacks = true
		d.AckAt = now
		return Fault(UnknownSequence)
	}
	last := d.last
	if p.Closing && d.heeds(p) {
		if d.closed && p.Last != d.last && !d.cfg.Reopens || p.Last < d.high || p.Last < d.Done {
			return Fault(LastMessageExceeded)
		}
		last = p.Last
	}
	base, window := max(d.Done, p.Floor-1), uint64(d.cfg.Window)
	for i := range p.Units {
		n := p.Units[i].Number
		switch {
		case (p.Closing || d.closed && !d.cfg.Reopens) && n > last:
			return Fault(LastMessageExceeded)
		case n > base && n-base > window, n > MaxNumber-window:
			return Fault(Invalid)
		}
	}
	return nil
}

// heeds reports whether what a packet says of the end of the sequence counts.
func (d *Filter) heeds(p *Packet) bool {
	return !d.cfg.Reopens || p.Number > d.Echo || len(p.Units) > 0 && p.Units[len(p.Units)-1].Number > d.last
}

// close takes in what a packet says of the end of the sequence.
func (d *Filter) close(p *Packet) {
	switch {
	case !d.heeds(p):
	case p.Closing && (!d.closed || p.Last != d.last):
		d.closed, d.last = true, p.Last
		d.Changed = true
	case !p.Closing && d.closed && d.cfg.Reopens:
		d.closed = false
		d.Changed = true
	}
}

// Take takes in a packet that Validate let pass.
func (d *Filter) Take(now time.Duration, p *Packet) {
	if d.Ended {
		d.lacks = !d.Terminated && !d.Complete()
		d.AckAt = now
		return
	}
	d.close(p)
	soon := p.Request || p.Closing || p.Terminate || p.Number != 0 && p.Number != d.Echo+1
	d.Echo = max(d.Echo, p.Number)
	d.unacked++
	if p.Floor > d.Done+1 {
		d.Skipped += int64(p.Floor - 1 - d.Done)
		d.skip(p.Floor - 1)
		d.ready()
	}
	for i := range p.Units {
		u := &p.Units[i]
		if d.seen(u.Number) {
			d.Duplicates++
			soon = true
			continue
		}
		soon = !d.accept(u) || soon
	}
	d.advance()
	d.AckAt = min(d.AckAt, now+d.cfg.AckDelay)
	switch {
	case !soon && d.unacked < d.cfg.AckEvery:
	case d.open > 0:
		d.hurry = true // what is committed in a moment need not be told twice
	default:
		d.AckAt = now
	}
	if p.Terminate {
		d.Terminated = true
		d.AckAt = now
	}
}

// seen is the filter of duplicates.
func (d *Filter) seen(number uint64) bool {
	return number <= d.Done || number <= d.high && d.unit(number).state != missing
}

// Complete reports whether the peer has closed its sequence, and all its messages are done.
func (d *Filter) Complete() bool { return d.closed && d.Done == d.last }

// skip is done with everything up to a number, delivered or not.
func (d *Filter) skip(to uint64) {
	steps := min(to-d.Done, uint64(len(d.units)))
	for number := d.Done + 1; number <= d.Done+steps; number++ {
		d.drop(number)
		if u := d.unit(number); u.state == delivered && u.first {
			d.open--
		}
		*d.unit(number) = receivedUnit{}
	}
	// What is left of a message whose beginning is gone cannot become whole; its run must not point
	// below.
	d.Done = to
	d.high = max(d.high, to)
	d.delivered = max(d.delivered, to)
	for number := to + 1; number <= d.high; number++ {
		u := d.unit(number)
		if u.state != held || u.first {
			break
		}
		d.drop(number)
		u.state = done
	}
}

// accept takes in a unit that is new, and reports whether it could be kept.
func (d *Filter) accept(u *Unit) bool {
	d.units = ringFor(d.units, d.Done, u.Number)
	if u.First && u.Last && (!d.cfg.Ordered || u.Number == d.delivered+1) {
		// The path of nearly all: nothing is copied.
		*d.unit(u.Number) = receivedUnit{first: true, last: true}
		d.high = max(d.high, u.Number)
		d.deliver(Range{u.Number, u.Number}, u.Payload)
		d.ready()
		return true
	}
	if !d.fits(u) {
		d.refuse(u.Number)
		return false
	}
	run := d.join(u)
	d.high = max(d.high, u.Number)
	if d.cfg.Ordered {
		d.ready()
	} else if d.unit(run.First).first && d.unit(run.Last).last {
		d.deliverHeld(run)
	}
	return true
}

// deliver hands a message over.
func (d *Filter) deliver(run Range, message []byte) {
	d.open++
	for number := run.First; number <= run.Last; number++ {
		d.unit(number).state = delivered
	}
	d.unit(run.First).other = run.Last
	d.delivered = max(d.delivered, run.Last)
	d.pass()
	d.Deliveries = append(d.Deliveries, Delivery{run.First, run.Last - run.First + 1, message})
}

// advance moves Done over what is.
func (d *Filter) advance() {
	for d.Done < d.high && d.unit(d.Done+1).state == done {
		d.Done++
		*d.unit(d.Done) = receivedUnit{}
	}
	d.delivered = max(d.delivered, d.Done)
	d.pass()
	for len(d.refused) > 0 && d.refused[0].First <= d.Done {
		if d.refused[0].Last > d.Done {
			d.refused[0].First = d.Done + 1
			break
		}
		d.refused = slices.Delete(d.refused, 0, 1)
	}
}

// pass moves delivered over what is done already.
func (d *Filter) pass() {
	for d.delivered < d.high && d.unit(d.delivered+1).state == done {
		d.delivered++
	}
}

// outstanding gives the first unit of a message that was delivered and is not committed.
func (d *Filter) outstanding(first uint64) (*receivedUnit, bool) {
	if first <= d.Done || first > d.high {
		return nil, false
	}
	u := d.unit(first)
	return u, u.state == delivered && u.first
}

// Outstanding reports whether a message was delivered with a number and is not committed.
func (d *Filter) Outstanding(first uint64) bool {
	_, ok := d.outstanding(first)
	return ok
}

// Begin notes that the handler of a message is about to run. Errors: Misuse.
func (d *Filter) Begin(first uint64) error {
	u, ok := d.outstanding(first)
	if !ok || u.begun {
		return Fault(Misuse)
	}
	u.begun = true
	d.Changed = true
	return nil
}

// Commit is done with a message that is outstanding.
func (d *Filter) Commit(now time.Duration, first uint64) {
	last := d.unit(first).other
	for number := first; number <= last; number++ {
		d.unit(number).state = done
	}
	before := d.Done
	d.advance()
	d.Changed = true
	d.open--
	switch {
	case d.open == 0 && d.hurry, d.Complete():
		d.AckAt = now
	case d.Done > before:
		d.AckAt = min(d.AckAt, now+d.cfg.AckDelay)
	}
}

// End is the end of the sequence: what is held will never be whole, or never have its turn. It
// reports whether it was not over before.
func (d *Filter) End() bool {
	if d.Ended {
		return false
	}
	d.Ended = true
	for number := d.Done + 1; number <= d.high; number++ {
		d.drop(number)
		if u := d.unit(number); u.state == held {
			*u = receivedUnit{}
		}
	}
	d.free, d.spare, d.refused = nil, 0, nil
	d.Changed = true
	return true
}
