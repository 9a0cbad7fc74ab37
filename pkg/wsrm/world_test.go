package wsrm_test

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// world is two ends, the paths between them, and virtual time.
type world struct {
	now     time.Time
	rand    *rand.Rand
	queue   happenings
	serial  int
	ends    [2]*end
	paths   [2]*link.Path
	fails   []string
	octets  [2]int64 // of datagrams, with 28 octets of headers each
	packets [2]int
	beside  int                                       // octets of a datagram beside the packet
	mangle  func(w *world, from int, datagram []byte) // an attacker on the path
	carrier carrier
}

// plan is what happens in a world.
type plan struct {
	cfg      wsrm.Config
	profile  string
	seed     uint64
	messages [2]int // by each end
	sizes    func(r *rand.Rand) int
	every    time.Duration // between messages; 0: all at once
	commit   time.Duration // the longest time a message takes to be committed
	crashes  int           // of each end
	hold     int           // what end 1 holds, if not the same
	volatile bool          // end 1 keeps no state
	cuts     int           // of the carrier
}

// lossy tells whether what is delivered is done: at-most-once over datagrams.
func (p *plan) lossy() bool { return p.cfg.Assurance == wsrm.AtMostOnce && !p.cfg.Carried }

// commits tells whether the effect of a message is that of its commit, so that a crash takes back what was not stored.
func (p *plan) commits() bool {
	return p.cfg.Assurance == wsrm.ExactlyOnce || p.cfg.Assurance == wsrm.AtMostOnce && p.cfg.Carried
}

type happening struct {
	at     time.Time
	serial int
	do     func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].serial < h[j].serial
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(p plan) *world {
	w := &world{now: start, rand: rand.New(rand.NewPCG(p.seed, 7))}
	profile, err := link.ParseProfile(fmt.Sprintf("%s,seed=%d", p.profile, p.seed))
	if err != nil {
		panic(err)
	}
	for i := range w.ends {
		if w.paths[i], err = link.NewPath(profile, i); err != nil {
			panic(err)
		}
		w.ends[i] = &end{w: w, plan: p, index: i, of: map[uint64]int{}, ids: p.messages[i], keeps: !p.volatile || i == 0, acked: map[int]bool{}, lost: map[int]bool{}, unsent: map[int]bool{}, fate: map[int]bool{},
			queued: map[int]time.Time{}, arrived: map[int]time.Time{}}
		w.ends[i].live()
	}
	if p.cfg.Carried {
		w.after(0, w.join)
		for range p.cuts {
			w.after(time.Duration(w.rand.Int64N(int64(time.Minute))), w.cut)
		}
	}
	for _, e := range w.ends {
		w.after(0, e.submit)
		for range p.crashes {
			w.after(time.Duration(w.rand.Int64N(int64(time.Minute))), e.crashSoon)
		}
	}
	return w
}

func (w *world) failf(format string, args ...any) {
	w.fails = append(w.fails, fmt.Sprintf(format, args...))
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.queue, happening{w.now.Add(d), w.serial, do})
}

// run lets everything happen until done says so, and tells whether that came before the deadline.
func (w *world) run(deadline time.Duration, done func() bool) bool {
	for len(w.queue) > 0 && !done() {
		h := heap.Pop(&w.queue).(happening)
		if h.at.Sub(start) > deadline {
			return false
		}
		w.now = h.at
		h.do()
	}
	return done()
}

func (w *world) over() bool {
	for _, e := range w.ends {
		if e.engine == nil || !e.engine.Over() {
			return false
		}
	}
	return true
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

// end is an engine with its application and its store.
type end struct {
	w     *world
	plan  plan
	index int
	keeps bool

	engine *wsrm.Engine
	life   uint64
	disk   stored
	crash  crash
	next   int            // messages handed to the engine; the ids of them are 0 to next-1
	ids    int            // to be sent in all
	of     map[uint64]int // position → id
	log    []int          // ids delivered
	lives  []int          // where in the log each life began

	open                      map[uint64]int // delivered, and not committed
	busy                      time.Time      // until the last commit to come
	ackedTo, lostTo           uint64
	acked, lost, unsent, fate map[int]bool
	ended                     []wsrm.Action
	finished                  time.Time // when the last message was acknowledged

	queued, arrived map[int]time.Time // when messages were handed to the engine, and when those of the other end were delivered
}

func (e *end) config() wsrm.Config {
	cfg := e.plan.cfg
	cfg.Instance = e.life
	if e.index == 1 && e.plan.hold > 0 {
		cfg.Hold = e.plan.hold
	}
	return cfg
}

// live starts a life.
func (e *end) live() {
	e.life++
	e.lives = append(e.lives, len(e.log))
	e.crash = noCrash
	e.open = map[uint64]int{}
	var err error
	if e.disk.state == nil || !e.keeps {
		e.engine, err = wsrm.New(e.config())
		e.next = 0
	} else {
		e.engine, err = wsrm.Restore(e.config(), e.disk.state)
		e.next = e.disk.next
		if e.plan.commits() {
			e.log = e.log[:e.disk.effects]
		}
	}
	if err != nil {
		panic(err)
	}
	e.settle()
}

func (e *end) crashSoon() {
	switch mode := e.w.rand.IntN(3); {
	case e.engine == nil:
	case mode == 0:
		e.die()
	default:
		e.crash = crash(mode)
	}
}

func (e *end) die() {
	e.engine = nil
	if e.plan.cfg.Carried {
		e.w.cut()
	}
	e.w.after(time.Duration(e.w.rand.Int64N(int64(20*time.Second))), e.live)
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

// submit hands messages to the engine, and closes behind the last.
func (e *end) submit() {
	if e.engine != nil && !e.engine.Over() {
		for e.next < e.ids {
			first := e.engine.Last() + 1
			if err := e.step(wsrm.Event{Kind: wsrm.Send, Message: e.body(e.next)}); err != nil {
				break
			}
			for position := first; position <= e.engine.Last(); position++ {
				e.of[position] = e.next
			}
			e.queued[e.next] = e.w.now
			e.next++
			if e.plan.every > 0 {
				break
			}
		}
		if e.next == e.ids {
			_ = e.step(wsrm.Event{Kind: wsrm.Close}) // refused if it is closed
		}
		e.settle()
	}
	if e.engine == nil || !e.engine.Over() {
		e.w.after(max(e.plan.every, 50*time.Millisecond), e.submit)
	}
}

// settle stores what must be, then wakes the engine.
func (e *end) settle() {
	if !e.store() {
		return
	}
	_ = e.step(wsrm.Event{Kind: wsrm.Wake})
}

// store writes the state if it changed; false: a crash struck.
func (e *end) store() bool {
	if e.engine == nil || !e.engine.Changed() {
		return e.engine != nil
	}
	if e.crash == beforeStore {
		e.die()
		return false
	}
	e.disk = stored{state: e.engine.AppendState(nil), next: e.next, effects: len(e.log)}
	if e.crash == afterStore {
		e.die()
		return false
	}
	return true
}

// step does what the engine wants.
func (e *end) step(ev wsrm.Event) error {
	actions, err := e.engine.Step(e.w.now, ev)
	var delivered []uint64
	engine := e.engine
	for _, a := range actions {
		if e.engine != engine {
			return err
		}
		switch a.Kind {
		case wsrm.Transmit:
			e.transmit(a.Packet)
		case wsrm.WakeAt:
			e.alarm(a.At)
		case wsrm.Deliver:
			if !e.deliver(a) {
				return err
			}
			delivered = append(delivered, a.Number)
		case wsrm.Acknowledged:
			e.mark(e.ackedTo+1, a.Number, e.acked)
			e.ackedTo = max(e.ackedTo, a.Number)
		case wsrm.Lost:
			if e.plan.cfg.Carried && e.plan.crashes == 0 && a.Number <= max(e.ackedTo, e.lostTo) {
				e.w.failf("end %d: what became of %d was told before", e.index, a.Number)
			}
			e.lostTo = a.Number + a.Count - 1
			e.mark(a.Number, a.Number+a.Count-1, e.lost)
		case wsrm.Unsent:
			e.mark(a.Number, a.Number+a.Count-1, e.unsent)
		case wsrm.Unknown:
			if !a.Remote {
				e.mark(a.Number, a.Number+a.Count-1, e.fate)
			}
		case wsrm.Ended:
			e.ended = append(e.ended, a)
		}
	}
	if e.plan.lossy() {
		return err
	}
	for _, number := range delivered {
		if e.plan.commit == 0 {
			e.commit(number)
			continue
		}
		at := e.w.now.Add(time.Duration(e.w.rand.Int64N(int64(e.plan.commit))) + 1)
		if e.plan.cfg.Ordered && at.Before(e.busy) {
			at = e.busy // one after the other
		}
		e.busy = at
		e.w.after(at.Sub(e.w.now), func() {
			if e.engine == engine {
				e.commit(number)
				e.settle()
			}
		})
	}
	return err
}

func (e *end) commit(number uint64) {
	if _, _, received := e.engine.Positions(); e.plan.cfg.Assurance == wsrm.AtMostOnce && number <= received {
		return // given up
	}
	if id, ok := e.open[number]; ok {
		e.log = append(e.log, id)
	}
	if err := e.step(wsrm.Event{Kind: wsrm.Committed, Number: number}); err != nil {
		e.w.failf("end %d: commit of %d: %v", e.index, number, err)
	}
}

func (e *end) mark(first, last uint64, as map[int]bool) {
	for position := first; position <= last; position++ {
		id, ok := e.of[position]
		if !ok {
			e.w.failf("end %d: nothing was ever sent as %d", e.index, position)
			return
		}
		as[id] = true
	}
	if len(e.acked) == e.ids && e.finished.IsZero() {
		e.finished = e.w.now
	}
}

// deliver looks at a message and notes it; false: a crash struck.
func (e *end) deliver(a wsrm.Action) bool {
	other := e.w.ends[1-e.index]
	id := int(binary.BigEndian.Uint64(a.Message))
	e.arrived[id] = e.w.now
	if !bytes.Equal(a.Message, other.body(id)) {
		e.w.failf("end %d: message %d is not what was sent", e.index, id)
	}
	if e.plan.lossy() && !e.store() {
		return false
	}
	if e.plan.commits() {
		e.open[a.Number] = id // its effect is part of the commit
		return true
	}
	e.log = append(e.log, id)
	return true
}

// alarm wakes the engine at a moment, if that is still the last it named.
func (e *end) alarm(at time.Time) {
	if at.IsZero() {
		return
	}
	engine := e.engine
	e.w.after(max(at.Sub(e.w.now), 0), func() {
		if e.engine == engine {
			e.settle()
		}
	})
}

func (e *end) transmit(p *wsrm.Packet) {
	if e.plan.cfg.Carried {
		e.w.carry(e.index, p)
		return
	}
	datagram := e.engine.Codec().Append(nil, p)
	if limit := max(e.plan.cfg.Datagram, 0); limit > 0 && len(datagram) > limit {
		e.w.failf("end %d: a datagram of %d octets", e.index, len(datagram))
	}
	e.w.octets[e.index] += int64(len(datagram) + e.w.beside + 28)
	e.w.packets[e.index]++
	if e.w.mangle != nil {
		e.w.mangle(e.w, e.index, datagram)
	}
	for _, at := range e.w.paths[e.index].Send(e.w.now, len(datagram)+e.w.beside) {
		e.w.after(at.Sub(e.w.now), func() { e.w.ends[1-e.index].receive(datagram) })
	}
}

func (e *end) receive(datagram []byte) {
	if e.engine == nil {
		return
	}
	var p wsrm.Packet
	if err := e.engine.Codec().Parse(datagram, &p); err != nil {
		e.w.failf("end %d: %v", e.index, err)
		return
	}
	if err := e.step(wsrm.Event{Kind: wsrm.Arrived, Packet: &p}); err != nil {
		e.w.failf("end %d refused %+v: %v", e.index, p, err)
	}
}
