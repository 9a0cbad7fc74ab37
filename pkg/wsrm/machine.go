package wsrm

import (
	"errors"
	"time"

	"github.com/hhfr/hhfr/internal/window"
)

// phase is that of the source's sequence. Its numbers stand in stored states.
type phase uint8

const (
	phaseOpen phase = iota
	phaseClosing
	phaseTerminating
	phaseEnded
)

// machine is an engine without its store.
type machine struct {
	cfg Config
	out source
	in  window.Filter

	epoch   time.Time     // the first moment seen
	now     time.Duration // since epoch, never backwards
	wake    time.Duration // what the caller was last told; never if nothing
	flush   bool          // something is to be sent now
	live    bool          // there is a carrier
	changed bool          // since the last appendState, in a way that must outlive a crash

	unknown []window.Range // messages of the peer begun before a crash, to be reported in the next step
	actions []Action
	packet  window.Packet
	single  [1]window.Unit
	resent  int64
	givenUp int64
}

// source is the sending half.
type source struct {
	window.Sender
	phase   phase
	reason  Reason
	control bool // something is to be said to the peer that asks for an answer
	spoke   bool // something was
	// forgotten, with at-most-once, is what a crash left of unknown fate, to be reported in the
	// next step.
	forgotten window.Range
}

const never = window.Never

func newMachine(cfg Config) (*machine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &machine{
		cfg: cfg, wake: never, changed: true,
		out: source{Sender: window.NewSender(cfg.Window, cfg.Hold)},
		in: window.NewReceiver(window.ReceiverConfig{
			Window: cfg.Window, Hold: cfg.Hold, Ordered: cfg.Ordered, Strict: cfg.Assurance == ExactlyOnce,
			Reopens: true, AckDelay: cfg.AckDelay, AckEvery: cfg.Window / 8,
		}),
	}, nil
}

// Last is the number of the last message that was accepted for sending.
func (m *machine) Last() uint64 { return m.out.Last }

// Over reports whether both sequences ended. An engine that is over only answers.
func (m *machine) Over() bool { return m.out.phase == phaseEnded && m.in.Ended }

// Closed reports whether this end accepts nothing more for sending.
func (m *machine) Closed() bool { return m.out.phase != phaseOpen }

// RemoteEnded reports whether the sequence of the peer is over.
func (m *machine) RemoteEnded() bool { return m.in.Ended }

// Resent is how often messages were sent again.
func (m *machine) Resent() int64 { return m.resent }

// GivenUp is how many messages of either direction at-most-once gave up with a carrier.
func (m *machine) GivenUp() int64 {
	if m.cfg.Assurance == AtMostOnce {
		return m.givenUp + m.in.Skipped
	}
	return m.givenUp
}

// Positions is how far the sequences are: up to where messages were accepted for sending, up to
// where the peer is done with them, and up to where this end is done with those of the peer.
func (m *machine) Positions() (accepted, done, received uint64) {
	return m.out.Last, m.out.Done, m.in.Done
}

// Undone yields what was accepted and is not done, in the order of the numbers, and whether it was
// ever sent, for as long as the sequence is not over. The messages must not be changed.
func (m *machine) Undone(yield func(number uint64, message []byte, sent bool) bool) {
	s := &m.out
	if s.phase >= phaseTerminating {
		return
	}
	for number := s.Done + 1; number <= s.Last; number++ {
		if !yield(number, s.Unit(number).Payload, number <= s.Sent) {
			return
		}
	}
}

// hasChanged reports whether the state is to be stored.
func (m *machine) hasChanged() bool { return m.changed || m.in.Changed }

// step lets ev happen; see [Engine.Step].
func (m *machine) step(now time.Time, ev Event) ([]Action, error) {
	m.start(now)
	err := m.happen(ev)
	m.reportWake()
	return m.actions, refused(err)
}

// begin notes that the handler of a message is about to run; see [Engine.Begin].
func (m *machine) begin(now time.Time, number uint64) ([]Action, error) {
	m.start(now)
	err := m.in.Begin(number)
	m.reportWake()
	return m.actions, refused(err)
}

func (m *machine) happen(ev Event) error {
	switch ev.Kind {
	case Send:
		return m.send(ev.Message)
	case Arrived:
		m.single[0] = window.Unit{Number: ev.Number, First: true, Last: true, Payload: ev.Message}
		err := m.arrived(&window.Packet{Floor: 1, Units: m.single[:]})
		m.single[0] = window.Unit{}
		return err
	case Heard:
		return m.heard(ev.Message)
	case Committed:
		return m.committed(ev.Number, ev.Message)
	case Close:
		return m.closing()
	case Ask:
		return m.ask()
	case Abort:
		m.abort(Aborted)
	case Connected:
		m.connected()
	case Disconnected:
		m.live, m.flush = false, false
		m.abandon(ev.Number)
	case Wake:
		m.transmit()
		m.flush = false
	default:
		return window.Fault(window.Misuse)
	}
	return nil
}

// start begins a step: the actions of the one before are over.
func (m *machine) start(now time.Time) {
	if m.epoch.IsZero() {
		m.epoch = now
	}
	m.now = max(m.now, now.Sub(m.epoch))
	m.actions = m.actions[:0]
	m.in.Recycle()
	for _, r := range m.unknown {
		m.act(Action{Kind: Unknown, Number: r.First, Count: r.Last - r.First + 1, Remote: true})
	}
	m.unknown = m.unknown[:0]
	if r := m.out.forgotten; r.First != 0 {
		m.act(Action{Kind: Lost, Number: r.First, Count: r.Last - r.First + 1})
		m.out.forgotten = window.Range{}
	}
}

func (m *machine) act(a Action) { m.actions = append(m.actions, a) }

// reportWake tells the caller when to wake this engine, if that is news.
func (m *machine) reportWake() {
	at := never
	if m.live {
		at = m.in.AckAt
		if m.out.phase != phaseEnded && m.out.Pending() {
			at = m.now
		}
	}
	if m.flush {
		at = m.now
	}
	at = max(at, m.now)
	if at != m.wake {
		m.wake = at
		a := Action{Kind: WakeAt}
		if at != never {
			a.At = m.epoch.Add(at)
		}
		m.act(a)
	}
}

// send accepts a message.
func (m *machine) send(message []byte) error {
	if m.out.phase != phaseOpen {
		return window.Fault(window.Closed)
	}
	err := m.out.Accept(message, m.cfg.Hold)
	if err == nil {
		m.changed = true
	}
	return err
}

// committed is done with a message, and sends its reply.
func (m *machine) committed(number uint64, reply []byte) error {
	if !m.in.Outstanding(number) {
		return window.Fault(window.Misuse)
	}
	if reply != nil {
		if err := m.send(reply); err != nil {
			return err
		}
	}
	m.in.Commit(m.now, number)
	return nil
}

var errUnits = errors.New("messages beside an acknowledgement")

// heard takes in what the peer said of the sequences.
func (m *machine) heard(said []byte) error {
	if err := m.packet.Parse(said); err != nil {
		return err
	}
	if len(m.packet.Units) > 0 {
		return errUnits
	}
	return m.arrived(&m.packet)
}

// arrived takes in a packet of the peer. What breaks a rule is refused as a whole, before anything
// changes.
func (m *machine) arrived(p *window.Packet) error {
	more := p.Number != 0 || len(p.Units) > 0 // than an acknowledgement
	if p.HasAck {
		if err := m.out.Validate(&p.Ack); err != nil {
			return err
		}
	}
	if more {
		if err := m.in.Validate(m.now, p); err != nil {
			return err
		}
	}
	if p.HasAck {
		m.acknowledged(&p.Ack)
	}
	if !more {
		return nil
	}
	m.in.Take(m.now, p)
	for _, d := range m.in.Deliveries {
		m.act(Action{Kind: Deliver, Number: d.Number, Count: d.Count, Message: d.Message})
	}
	if p.Terminate {
		m.endRemote()
	}
	return nil
}

// acknowledged takes in an acknowledgement.
func (m *machine) acknowledged(a *window.AckPacket) {
	s := &m.out
	if s.phase == phaseEnded || !s.Current(a) {
		return
	}
	if a.Unknown {
		m.abort(Unrecognized)
		return
	}
	s.Echo = max(s.Echo, a.Echo)
	if s.phase != phaseTerminating && s.Acknowledged(a) {
		m.act(Action{Kind: Acknowledged, Number: s.Done})
	}
	m.sayEnd(a)
}

// say has something said to the peer that asks for an answer.
func (m *machine) say() {
	m.out.control = true
	m.flush = true
}

// transmit hands out all that waits; what bounds it is the window.
func (m *machine) transmit() {
	s := &m.out
	if !m.live {
		return
	}
	if s.phase != phaseEnded && s.control {
		m.sendControl()
	}
	if s.phase != phaseEnded {
		for number, ok := s.Next(); ok; number, ok = s.Next() {
			if s.Launch(number, 0) {
				m.resent++
			}
			m.act(Action{Kind: Transmit, Number: number, Message: s.Unit(number).Payload})
		}
	}
	if m.in.AckAt <= m.now {
		m.packet.Clear()
		m.acknowledge()
		m.act(Action{Kind: Say, Acks: true, Message: m.packet.Append(nil)})
	}
}

// sendControl says how far this end is, and asks for an answer.
func (m *machine) sendControl() {
	s, p := &m.out, &m.packet
	s.control = false
	s.Packet++
	p.Clear()
	p.Number, p.Floor, p.Request = s.Packet, s.Done+1, true
	p.Closing, p.Terminate, p.Last = s.phase >= phaseClosing, s.phase == phaseTerminating, s.Last
	if m.in.AckAt != never {
		m.acknowledge()
	}
	s.spoke = true
	m.act(Action{Kind: Say, Asks: true, Acks: p.HasAck, Message: p.Append(nil)})
}

// acknowledge puts an acknowledgement into the packet at hand.
func (m *machine) acknowledge() {
	m.packet.HasAck = true
	m.in.FillAck(&m.packet.Ack)
	m.in.Acked()
}
