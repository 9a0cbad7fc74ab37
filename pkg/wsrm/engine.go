// Package wsrm carries messages reliably over a network that loses, reorders and repeats datagrams: reliable sequences with the meaning of WS-ReliableMessaging 1.1 and 1.2
// (OASIS 200702; 1.0 for LastMessage), in a form made for thin links. It has no socket and no clock.
//
// An [Engine] is one end: the source of one sequence and the destination of the other end's. Everything that happens to it is an [Event] for [Engine.Step], everything it wants an
// [Action] that Step returns. Datagrams come out of [Wake] alone, so that what was queued until then shares them, and so that the caller can store the state before anything of it is
// seen outside: if [Engine.Changed], store [Engine.AppendState], then step Wake. After a crash [Restore] goes on from the stored value.
//
// # Numbers and acknowledgements
//
// A message has one or more units, each of which fits a datagram; units are numbered from 1, without gaps, and a unit sent again keeps its number (WS-RM 1.1, 3.7 Sequences). A sequence
// that reaches [Config.Limit] goes on as the next sequence of the same session, numbered from 1; in the API positions count on over the roll-over. An acknowledgement says up to
// where all is done, that is delivered and, but for at-most-once over datagrams, committed; and which units above arrived. What is done stays done. What merely arrived may be
// lost when the destination crashes: a greater [Config.Instance] takes it back. A nack names a unit that arrived and could not be kept; it is sent again, and is no sign of
// congestion (WS-RM 1.1, 3.9 Sequence Acknowledgement). A destination filters duplicates by one bit of state for each number in a window above what is done: memory is bounded by [Config.Window] and [Config.Hold].
//
// # Time and congestion
//
// Each datagram that wants to be acknowledged has a number of its own, never used twice, and acknowledgements echo the greatest: round trips are never ambiguous (Karn's
// problem, RFC 6298 section 3, does not arise). The retransmission timer is that of RFC 6298 section 2, with back-off by section 5.5. Before it fires, a unit is lost
// when a datagram sent three later was echoed, or any later one and 9/8 of a round trip passed, the rule of RACK (RFC 8985 section 6.2). Where none was sent later, the last one is sent again after two round trips, if the timer is longer than
// that, as it is on fast links: a tail loss probe (section 7). Congestion control is what RFC 8085 section 3.1.1
// asks of bulk transfer: a window by RFC 5681 (initial window, slow start, congestion avoidance counting octets, half the flight on loss, one datagram after a time-out),
// halved at most once per round trip, grown only while it is the bound, and paced over the round trip at 2 times (slow start) or 5/4 times the window. A time-out that turns out to be
// wrong is undone, as RFC 4015 does.
//
// # Assurances
//
// At-most-once: nothing is sent again, and no number is delivered twice; what is lost is reported as [Lost]. At-least-once: a message is sent until it is done or reported. Exactly-once:
// both, over crashes of either end, if both store their state. [Config.Ordered]: messages are delivered in the order of their numbers; at-most-once over datagrams then drops what comes late.
//
// # Carriers
//
// With [Config.Carried] the units go over carriers that neither lose nor reorder, one after another: connections. What is lost then is lost with its carrier, so there is no timer, no congestion window and no
// datagram: a unit is a whole message, sent once on each carrier, and whatever is not done is sent again on the next. Numbers, the filter of duplicates, order, close and terminate, and the stored state are the same.
package wsrm

import "time"

// Engine is one end of a pair of sequences. It is not safe for concurrent use.
type Engine struct {
	cfg   Config
	codec Codec
	out   source
	in    destination

	epoch   time.Time     // the first moment seen
	now     time.Duration // since epoch, never backwards
	heard   time.Duration // when something valid arrived last
	wake    time.Duration // what the caller was last told; never if nothing
	flush   bool          // something is to be sent now
	live    bool          // there is a carrier; without [Config.Carried] there always is
	changed bool
	awaited bool // see [Await]
	silence silence

	actions []Action
	packets []*Packet // those of this step, and behind them those to be used again
	used    int
	stats   Stats
}

// never is a moment that does not come.
const never = time.Duration(1<<63 - 1)

// New makes an engine without a past. Errors: BadConfig.
func New(cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, codec: Codec{Limit: cfg.Limit}, wake: never, changed: true, live: !cfg.Carried}
	e.out.init(&e.cfg)
	e.in.init(&e.cfg)
	return e, nil
}

// Codec writes and reads the datagrams of this engine's session.
func (e *Engine) Codec() Codec { return e.codec }

// Last is the position of the last unit that was accepted for sending; that of a message is the position of its last unit.
func (e *Engine) Last() uint64 { return e.out.last }

// Changed tells that the state differs from that of the last [Engine.AppendState] in a way that must outlive a crash. An end that keeps its state stores it then: before it steps [Wake], before it runs a
// handler for which it stepped [Begun], and under at-most-once over datagrams before it hands over what was delivered.
func (e *Engine) Changed() bool { return e.changed }

// Over tells that both sequences ended. An engine that is over only answers; the caller lets go of it when no datagram of the other end can be under way any more.
func (e *Engine) Over() bool { return e.out.phase == phaseEnded && e.in.ended }

// Closed tells that this end accepts nothing more for sending.
func (e *Engine) Closed() bool { return e.out.phase != phaseOpen }

// RemoteEnded tells that the sequence of the other end is over.
func (e *Engine) RemoteEnded() bool { return e.in.ended }

// Complete tells that the other end has closed its sequence, and that all its messages are done: nothing more comes, whether or not the other end manages to say that it ended.
func (e *Engine) Complete() bool { return e.in.complete() }

// Step lets ev happen at the moment now; moments that go backwards count as no time passed. The actions, and all they point to, hold until the next Step. An error says that ev was refused and changed
// nothing, except where its code says otherwise; the actions of refused events still count.
func (e *Engine) Step(now time.Time, ev Event) ([]Action, error) {
	e.begin(now)
	var err error
	switch ev.Kind {
	case Send:
		err = e.send(ev.Message)
	case Arrived:
		err = e.arrived(ev.Packet)
	case Begun:
		err = e.begun(ev.Number)
	case Committed:
		err = e.committed(ev.Number, ev.Message)
	case Close:
		err = e.closing()
	case Ask:
		err = e.ask()
	case Abort:
		e.abort(Aborted)
	case Connected:
		err = e.connected()
	case Disconnected:
		err = e.disconnected(ev.Number)
	case Await, Rest:
		e.awaited = ev.Kind == Await
	case Moved:
		e.moved()
	case Wake:
		e.timers()
		e.transmit()
		e.flush = false
	default:
		err = fault(Misuse)
	}
	e.attend()
	e.reportWake()
	return e.actions, err
}

// begin starts a step: the actions of the one before are over.
func (e *Engine) begin(now time.Time) {
	if e.epoch.IsZero() {
		e.epoch = now
	}
	e.now = max(e.now, now.Sub(e.epoch))
	e.actions = e.actions[:0]
	e.used = 0
	e.in.recycle()
	for _, r := range e.in.unknown {
		e.act(Action{Kind: Unknown, Number: r.First, Count: r.Last - r.First + 1, Remote: true})
	}
	e.in.unknown = e.in.unknown[:0]
	if r := e.out.forgotten; r.First != 0 {
		e.act(Action{Kind: Lost, Number: r.First, Count: r.Last - r.First + 1})
		e.out.forgotten = Range{}
	}
}

func (e *Engine) act(a Action) { e.actions = append(e.actions, a) }

// timers does what is due.
func (e *Engine) timers() {
	if e.now >= e.out.lossAt {
		e.detectLoss()
	}
	if e.now >= e.out.tailAt {
		e.probeTail()
	}
	if e.now >= e.out.rtoAt {
		e.timeout()
	}
	if e.now >= e.inactiveAt() {
		e.abort(Inactive)
		e.in.end(e, Inactive)
	}
}

// inactiveAt is when a silent other end is given up.
func (e *Engine) inactiveAt() time.Duration {
	if e.out.phase == phaseEnded && e.in.ended || e.cfg.Carried {
		return never
	}
	return min(e.heard+e.cfg.Inactivity, e.unansweredAt())
}

// reportWake tells the caller when to wake this engine, if that is news.
func (e *Engine) reportWake() {
	at := e.inactiveAt()
	if e.live {
		at = min(at, e.out.wakeAt(e), e.silence.askAt(e), e.in.ackAt)
	}
	if e.flush {
		at = e.now
	}
	at = max(at, e.now)
	if at != e.wake {
		e.wake = at
		a := Action{Kind: WakeAt}
		if at != never {
			a.At = e.epoch.Add(at)
		}
		e.act(a)
	}
}

// packet gives an empty packet that holds until the next step.
func (e *Engine) packet() *Packet {
	if e.used == len(e.packets) {
		e.packets = append(e.packets, &Packet{})
	}
	p := e.packets[e.used]
	e.used++
	*p = Packet{Units: p.Units[:0], Ack: Ack{Ranges: p.Ack.Ranges[:0], Nacks: p.Ack.Nacks[:0]}}
	return p
}

// arrived takes in a packet of the other end. What breaks a rule is refused as a whole, before anything changes.
func (e *Engine) arrived(p *Packet) error {
	if err := e.validate(p); err != nil {
		e.stats.Refused++
		return err
	}
	e.heard = e.now
	e.stats.Received++
	if p.HasAck {
		e.stats.AcksReceived++
		e.acknowledged(&p.Ack)
	}
	if e.tells(p) {
		e.in.take(e, p)
	}
	return nil
}

// tells whether a packet says more than an acknowledgement. Units on a carrier come without a datagram's number.
func (e *Engine) tells(p *Packet) bool { return p.Number != 0 || e.cfg.Carried && len(p.Units) > 0 }

func (e *Engine) validate(p *Packet) error {
	if p == nil {
		return fault(Misuse)
	}
	if p.HasAck {
		if err := e.validateAck(&p.Ack); err != nil {
			return err
		}
	}
	if e.tells(p) {
		return e.in.validate(e, p)
	}
	return nil
}
