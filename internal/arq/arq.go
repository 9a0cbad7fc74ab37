// Package arq carries messages reliably over a network that loses, reorders and repeats datagrams:
// exactly once, in order, both ways, with no more than memory to keep them in. It is the engine of
// the UDP transport (pkg/streamer/udp), and has no socket and no clock.
//
// An [Endpoint] is one end: the sender of one sequence and the receiver of the peer's. Everything
// that happens to it is an [Event] for [Endpoint.Step], everything it wants an [Instruction] that
// Step returns. Datagrams come out of [Wake] alone, so that what was queued until then shares them.
// A message has one or more units, each of which fits a datagram (internal/window).
//
// # Time and congestion
//
// Each datagram that wants to be acknowledged has a number of its own, never used twice, and
// acknowledgements echo the greatest: round trips are never ambiguous (Karn's problem, RFC 6298
// section 3, does not arise). The retransmission timer is that of RFC 6298 section 2, with back-off
// by section 5.5. Before it fires, a unit is lost when a datagram sent three later was echoed, or
// any later one and 9/8 of a round trip passed, the rule of RACK (RFC 8985 section 6.2). Where none
// was sent later, the last one is sent again after two round trips, if the timer is longer than
// that, as it is on fast links: a tail loss probe (section 7).
//
// Congestion control is what RFC 8085 section 3.1.1 asks of bulk transfer: a window by RFC 5681
// (initial window, slow start, congestion avoidance counting bytes, half the flight on loss, one
// datagram after a time-out), halved at most once per round trip, grown only while it is the bound,
// and paced over the round trip at 2 times (slow start) or 5/4 times the window. A time-out that
// turns out to be wrong is undone, as RFC 4015 does.
package arq

import (
	"time"

	"github.com/hhfr/hhfr/internal/window"
)

// Endpoint is one end of a pair of sequences. It is not safe for concurrent use.
type Endpoint struct {
	cfg Config
	out sendHalf
	in  window.Filter

	epoch   time.Time     // the first moment seen
	now     time.Duration // since epoch, never backwards
	heard   time.Duration // when something valid arrived last
	wake    time.Duration // what the caller was last told; never if nothing
	flush   bool          // something is to be sent now
	awaited bool          // see [Await]
	silence silence

	actions []Instruction
	packets []*window.Packet // those of this step, and after them those to be used again
	used    int
	stats   Stats
}

const never = window.Never

// New makes an engine. An error says which field of the configuration cannot work.
func New(cfg Config) (*Endpoint, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Endpoint{cfg: cfg, wake: never, in: window.NewReceiver(window.ReceiverConfig{
		Window: cfg.Window, Hold: cfg.Hold, Ordered: true, Strict: true, AckDelay: ackDelay, AckEvery: 2,
	})}
	e.out.init(&e.cfg)
	return e, nil
}

// Over reports whether both sequences ended. An engine that is over only answers; the caller lets
// go of it when no datagram of the peer can be under way any more.
func (e *Endpoint) Over() bool { return e.out.phase == phaseEnded && e.in.Ended }

// Complete reports whether the peer has closed its sequence and all its messages are done: nothing
// more comes, whether or not the peer manages to say that it ended.
func (e *Endpoint) Complete() bool { return e.in.Complete() }

// Held is how many bytes the receiver has memory for: of what it cannot deliver yet, and to spare.
func (e *Endpoint) Held() int { return e.in.Held() }

// Narrow has the receiver keep no more than so many bytes of what it cannot deliver yet, of at most
// [Config.Hold]: for an owner of many engines, and memory for some.
func (e *Endpoint) Narrow(bytes int) { e.in.Narrow(bytes) }

// Step lets ev happen at the moment now; moments that go backwards count as no time passed. The
// actions, and all they point to, hold until the next Step. An error says that ev was refused and
// changed nothing, except where its code says otherwise; the actions of refused events still count.
func (e *Endpoint) Step(now time.Time, ev Event) ([]Instruction, error) {
	e.begin(now)
	var err error
	switch ev.Kind {
	case Send:
		err = e.send(ev.Message)
	case Arrived:
		err = e.arrived(ev.Packet)
	case Committed:
		err = e.committed(ev.Number)
	case Close:
		err = e.closing()
	case Ask:
		err = e.ask()
	case Await, Rest:
		e.awaited = ev.Kind == Await
	case Moved:
		e.moved()
	case Wake:
		e.timers()
		e.transmit()
		e.flush = false
	default:
		err = window.Fault(window.Misuse)
	}
	e.attend()
	e.reportWake()
	return e.actions, err
}

// begin starts a step: the actions of the one before are over.
func (e *Endpoint) begin(now time.Time) {
	if e.epoch.IsZero() {
		e.epoch = now
	}
	e.now = max(e.now, now.Sub(e.epoch))
	e.actions = e.actions[:0]
	e.used = 0
	e.in.Recycle()
}

func (e *Endpoint) act(a Instruction) { e.actions = append(e.actions, a) }

// send accepts a message.
func (e *Endpoint) send(message []byte) error {
	if e.out.phase != phaseOpen {
		return window.Fault(window.Closed)
	}
	return e.out.accept(message)
}

// committed is done with a message that was delivered.
func (e *Endpoint) committed(number uint64) error {
	if !e.in.Outstanding(number) {
		return window.Fault(window.Misuse)
	}
	e.in.Commit(e.now, number)
	return nil
}

// timers does what is due.
func (e *Endpoint) timers() {
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
		e.end(Inactive)
		e.endRemote(Inactive)
	}
}

// inactiveAt is when a silent peer is given up.
func (e *Endpoint) inactiveAt() time.Duration {
	if e.Over() {
		return never
	}
	return min(e.heard+e.cfg.Inactivity, e.unansweredAt())
}

// reportWake tells the caller when to wake this engine, if that is news.
func (e *Endpoint) reportWake() {
	at := min(e.inactiveAt(), e.out.wakeAt(e), e.silence.askAt(e), e.in.AckAt)
	if e.flush {
		at = e.now
	}
	at = max(at, e.now)
	if at != e.wake {
		e.wake = at
		a := Instruction{Kind: WakeAt}
		if at != never {
			a.At = e.epoch.Add(at)
		}
		e.act(a)
	}
}

// packet gives an empty packet that holds until the next step.
func (e *Endpoint) packet() *window.Packet {
	if e.used == len(e.packets) {
		e.packets = append(e.packets, &window.Packet{})
	}
	p := e.packets[e.used]
	e.used++
	p.Clear()
	return p
}

// arrived takes in a packet of the peer. What breaks a rule is refused as a whole, before anything
// changes.
func (e *Endpoint) arrived(p *window.Packet) error {
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
	if p.Number == 0 {
		return nil
	}
	e.in.Take(e.now, p)
	for _, d := range e.in.Deliveries {
		e.act(Instruction{Kind: Deliver, Number: d.Number, Message: d.Message})
	}
	if p.Terminate {
		e.endRemote(Aborted)
	}
	return nil
}

func (e *Endpoint) validate(p *window.Packet) error {
	if p == nil {
		return window.Fault(window.Misuse)
	}
	if p.HasAck {
		if err := e.out.Validate(&p.Ack); err != nil {
			return err
		}
	}
	if p.Number == 0 {
		return nil
	}
	return e.in.Validate(e.now, p)
}
