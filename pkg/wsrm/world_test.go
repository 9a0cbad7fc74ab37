package wsrm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hhfr/hhfr/internal/timeline"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// world is two ends, the connections between them, one after another, and virtual time.
type world struct {
	timeline.Timeline
	rand  *rand.Rand
	ends  [2]*end
	fails []string
	form  *soapForm // nil: frames carry

	up       bool
	carrier  int          // counts the connections
	next     [2]time.Time // nothing of this direction arrives before
	arrivals [2]uint64    // the last message of this direction that arrived; 0: none did
}

// plan is what happens in a world.
type plan struct {
	cfg      wsrm.Config
	seed     uint64
	messages [2]int // by each end
	sizes    func(r *rand.Rand) int
	every    time.Duration // between messages; 0: all at once
	commit   time.Duration // the longest time a message takes to be committed
	crashes  int           // of each end
	volatile bool          // end 1 keeps no state
	cuts     int           // of the connection
}

// commits reports whether the effect of a message is that of its commit, so that a crash takes back
// what was not stored.
func (p *plan) commits() bool { return p.cfg.Assurance != wsrm.AtLeastOnce }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(p plan) *world {
	w := &world{Timeline: timeline.Timeline{Now: start}, rand: rand.New(rand.NewPCG(p.seed, 7))}
	for i := range w.ends {
		w.ends[i] = &end{
			w: w, plan: p, index: i, ids: p.messages[i], keeps: !p.volatile || i == 0, of: map[uint64]int{},
			acked: map[int]bool{}, lost: map[int]bool{}, given: map[int]bool{},
		}
		w.ends[i].live()
	}
	w.After(0, w.join)
	for range p.cuts {
		w.After(time.Duration(w.rand.Int64N(int64(time.Minute))), w.cut)
	}
	for _, e := range w.ends {
		w.After(0, e.submit)
		for range p.crashes {
			w.After(time.Duration(w.rand.Int64N(int64(time.Minute))), e.crashSoon)
		}
	}
	return w
}

func (w *world) failf(format string, args ...any) {
	w.fails = append(w.fails, fmt.Sprintf(format, args...))
}

// run lets everything happen until done says so, and reports whether that came before the deadline.
func (w *world) run(deadline time.Duration, done func() bool) bool {
	return w.Run(start.Add(deadline), done)
}

func (w *world) over() bool {
	for _, e := range w.ends {
		if e.machine == nil || !e.machine.Over() {
			return false
		}
	}
	return true
}

// untaken is from where on a connection that is cut can say that it was handed nothing of a
// direction; 0: it cannot.
func (w *world) untaken(from int) uint64 {
	if w.rand.IntN(2) == 0 {
		return 0
	}
	return w.arrivals[from] + 1 + w.rand.Uint64N(8)
}

// cut ends the connection; what is under way is lost.
func (w *world) cut() {
	if !w.up {
		return
	}
	w.up = false
	w.carrier++
	for _, e := range w.ends {
		if e.machine != nil {
			if err := e.step(wsrm.Event{Kind: wsrm.Disconnected, Number: w.untaken(e.index)}); err != nil {
				w.failf("end %d: %v", e.index, err)
			}
		}
	}
	w.After(time.Duration(w.rand.Int64N(int64(5*time.Second))), w.join)
}

// join makes a new connection as soon as both ends live.
func (w *world) join() {
	for _, e := range w.ends {
		if e.machine == nil {
			w.After(time.Second, w.join)
			return
		}
	}
	w.up, w.arrivals = true, [2]uint64{}
	for _, e := range w.ends {
		if e.machine == nil {
			return // it died meanwhile, and cut the connection
		}
		if err := e.step(wsrm.Event{Kind: wsrm.Connected}); err != nil {
			w.failf("end %d: %v", e.index, err)
		}
		e.settle()
	}
}

// carry brings to the peer what one sent or said.
func (w *world) carry(from int, a wsrm.Action) {
	if !w.up {
		w.failf("end %d sends without a connection", from)
		return
	}
	if w.form != nil {
		w.form.carry(from, a)
		return
	}
	ev := wsrm.Event{Kind: wsrm.Heard, Message: bytes.Clone(a.Message)}
	if a.Kind == wsrm.Transmit {
		ev.Kind, ev.Number = wsrm.Arrived, a.Number
	}
	at := w.Now.Add(time.Duration(w.rand.Int64N(int64(300 * time.Millisecond))))
	if at.Before(w.next[from]) {
		at = w.next[from]
	}
	w.next[from] = at
	carrier := w.carrier
	w.After(at.Sub(w.Now), func() {
		if w.carrier != carrier {
			return
		}
		if ev.Kind == wsrm.Arrived {
			w.arrivals[from] = ev.Number
		}
		w.ends[1-from].take(ev)
	})
}

// stored is what an end finds after a crash.
type stored struct {
	state   []byte
	next    int // messages accepted
	effects int // exactly-once: how much of the log belongs to the state
}

// crash is where the next crash strikes.
type crash int

const (
	noCrash crash = iota
	beforeStore
	afterStore
)

// end is a machine with its application and its store.
type end struct {
	w     *world
	plan  plan
	index int
	keeps bool

	machine *wsrm.Machine // nil: it died
	life    uint64
	disk    stored
	crash   crash
	next    int            // messages handed to the machine; the ids of them are 0 to next-1
	ids     int            // to be sent in all
	of      map[uint64]int // number → id
	log     []int          // ids delivered
	lives   []int          // where in the log each life began

	open            map[uint64]int // delivered, and not committed
	busy            time.Time      // until the last commit to come
	ackedTo, lostTo uint64
	acked, lost     map[int]bool
	given           map[int]bool // told as unsent, or of unknown fate
	ended           []wsrm.Action
}

// live starts a life.
func (e *end) live() {
	e.lives = append(e.lives, len(e.log))
	e.crash = noCrash
	e.open = map[uint64]int{}
	var err error
	if e.disk.state == nil || !e.keeps {
		if e.machine, err = wsrm.NewMachine(e.plan.cfg); err == nil {
			e.machine.Forgotten(e.life)
		}
		e.next = 0
	} else {
		e.machine, err = wsrm.RestoreMachine(e.plan.cfg, e.disk.state)
		e.next = e.disk.next
		if e.plan.commits() {
			e.log = e.log[:e.disk.effects]
		}
	}
	if err != nil {
		panic(err)
	}
	e.life++
	e.settle()
}

func (e *end) crashSoon() {
	switch mode := e.w.rand.IntN(3); {
	case e.machine == nil:
	case mode == 0:
		e.die()
	default:
		e.crash = crash(mode)
	}
}

func (e *end) die() {
	e.machine = nil
	e.w.cut()
	e.w.After(time.Duration(e.w.rand.Int64N(int64(20*time.Second))), e.live)
}

// body is the message of an id: it says all of itself.
func (e *end) body(id int) []byte {
	r := rand.New(rand.NewPCG(e.plan.seed, uint64(id*2+e.index)))
	b := make([]byte, 8+e.plan.sizes(r))
	binary.BigEndian.PutUint64(b, uint64(id))
	for i := 8; i < len(b); i++ {
		b[i] = byte(id + i)
	}
	return b
}

// submit hands messages to the machine, and closes after the last.
func (e *end) submit() {
	if e.machine != nil && !e.machine.Over() {
		for e.next < e.ids {
			if err := e.step(wsrm.Event{Kind: wsrm.Send, Message: e.body(e.next)}); err != nil {
				break
			}
			e.of[e.machine.Last()] = e.next
			e.next++
			if e.plan.every > 0 {
				break
			}
		}
		if e.next == e.ids && e.w.form == nil { // in SOAP, messages of their own end a sequence
			_ = e.step(wsrm.Event{Kind: wsrm.Close}) // refused if it is closed
		}
		e.settle()
	}
	if e.machine == nil || !e.machine.Over() {
		e.w.After(max(e.plan.every, 50*time.Millisecond), e.submit)
	}
}

// settle stores what must be, then wakes the machine.
func (e *end) settle() {
	if e.store() {
		_ = e.step(wsrm.Event{Kind: wsrm.Wake})
	}
}

// store writes the state if it changed; false: a crash struck.
func (e *end) store() bool {
	if e.machine == nil || !e.machine.Changed() {
		return e.machine != nil
	}
	if e.crash == beforeStore {
		e.die()
		return false
	}
	e.disk = stored{state: e.machine.AppendState(nil), next: e.next, effects: len(e.log)}
	if e.crash == afterStore {
		e.die()
		return false
	}
	return true
}

// step does what the machine wants.
func (e *end) step(ev wsrm.Event) error {
	actions, err := e.machine.Step(e.w.Now, ev)
	var delivered []uint64
	machine := e.machine
	for _, a := range actions {
		if e.machine != machine {
			return err
		}
		switch a.Kind {
		case wsrm.Transmit, wsrm.Say:
			e.w.carry(e.index, a)
		case wsrm.WakeAt:
			e.alarm(a.At)
		case wsrm.Deliver:
			e.deliver(a)
			delivered = append(delivered, a.Number)
		default:
			e.note(a)
		}
	}
	for _, number := range delivered {
		e.commitLater(number)
	}
	return err
}

// note takes in what became of messages.
func (e *end) note(a wsrm.Action) {
	last := a.Number + a.Count - 1
	switch a.Kind {
	case wsrm.Acknowledged:
		e.mark(e.ackedTo+1, a.Number, e.acked)
		e.ackedTo = max(e.ackedTo, a.Number)
	case wsrm.Lost:
		if e.plan.crashes == 0 && a.Number <= max(e.ackedTo, e.lostTo) {
			e.w.failf("end %d: what became of %d was told before", e.index, a.Number)
		}
		e.lostTo = last
		e.mark(a.Number, last, e.lost)
	case wsrm.Unsent, wsrm.Unknown:
		if !a.Remote {
			e.mark(a.Number, last, e.given)
		}
	case wsrm.Ended:
		e.ended = append(e.ended, a)
	default:
	}
}

func (e *end) mark(first, last uint64, as map[int]bool) {
	for number := first; number <= last; number++ {
		id, ok := e.of[number]
		if !ok {
			e.w.failf("end %d: nothing was ever sent as %d", e.index, number)
			return
		}
		as[id] = true
	}
}

func (e *end) commitLater(number uint64) {
	if e.plan.commit == 0 {
		e.commit(number)
		return
	}
	at := e.w.Now.Add(time.Duration(e.w.rand.Int64N(int64(e.plan.commit))) + 1)
	if e.plan.cfg.Ordered && at.Before(e.busy) {
		at = e.busy // one after the other
	}
	e.busy = at
	machine := e.machine
	e.w.After(at.Sub(e.w.Now), func() {
		if e.machine == machine {
			e.commit(number)
			e.settle()
		}
	})
}

func (e *end) commit(number uint64) {
	if _, _, received := e.machine.Positions(); e.plan.cfg.Assurance == wsrm.AtMostOnce && number <= received {
		return // given up
	}
	if id, ok := e.open[number]; ok {
		e.log = append(e.log, id)
	}
	if err := e.step(wsrm.Event{Kind: wsrm.Committed, Number: number}); err != nil {
		e.w.failf("end %d: commit of %d: %v", e.index, number, err)
	}
}

// deliver looks at a message and notes it.
func (e *end) deliver(a wsrm.Action) {
	peer := e.w.ends[1-e.index]
	id := int(binary.BigEndian.Uint64(a.Message))
	if !bytes.Equal(a.Message, peer.body(id)) {
		e.w.failf("end %d: message %d is not what was sent", e.index, id)
	}
	if e.plan.commits() {
		e.open[a.Number] = id // its effect is part of the commit
		return
	}
	e.log = append(e.log, id)
}

// alarm wakes the machine at a moment.
func (e *end) alarm(at time.Time) {
	if at.IsZero() {
		return
	}
	machine := e.machine
	e.w.After(max(at.Sub(e.w.Now), 0), func() {
		if e.machine == machine {
			e.settle()
		}
	})
}

// take hands the machine what arrived, if there is one.
func (e *end) take(ev wsrm.Event) {
	if e.machine == nil {
		return
	}
	if err := e.step(ev); err != nil {
		e.w.failf("end %d refused %+v: %v", e.index, ev, err)
	}
	e.settle()
}
