package arq_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/timeline"
	"github.com/hhfr/hhfr/internal/window"
)

// world is two ends, the paths between them, and virtual time.
type world struct {
	timeline.Timeline
	rand    *rand.Rand
	ends    [2]*end
	paths   [2]*link.Path
	fails   []string
	bytes   [2]int64 // of datagrams, with 28 bytes of headers each
	packets [2]int
	beside  int                                       // bytes of a datagram beside the packet
	mangle  func(w *world, from int, datagram []byte) // an attacker on the path
}

// plan is what happens in a world.
type plan struct {
	cfg      arq.Config
	profile  string
	seed     uint64
	messages [2]int // by each end
	sizes    func(r *rand.Rand) int
	every    time.Duration // between messages; 0: all at once
	commit   time.Duration // the longest time a message takes to be committed
	hold     int           // what end 1 holds, if not the same
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(p plan) *world {
	w := &world{Timeline: timeline.Timeline{Now: start}, rand: rand.New(rand.NewPCG(p.seed, 7))}
	profile, err := link.ParseProfile(fmt.Sprintf("%s,seed=%d", p.profile, p.seed))
	if err != nil {
		panic(err)
	}
	for i := range w.ends {
		if w.paths[i], err = link.NewPath(profile, i); err != nil {
			panic(err)
		}
		cfg := p.cfg
		if i == 1 && p.hold > 0 {
			cfg.Hold = p.hold
		}
		e := &end{w: w, plan: p, index: i, ids: p.messages[i]}
		if e.engine, err = arq.New(cfg); err != nil {
			panic(err)
		}
		w.ends[i] = e
	}
	for _, e := range w.ends {
		w.After(0, e.submit)
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
		if e.engine == nil || !e.engine.Over() {
			return false
		}
	}
	return true
}

// end is an engine with its application. It sends messages with ids from 0 on.
type end struct {
	w     *world
	plan  plan
	index int

	engine   *arq.Endpoint // nil: it died
	ids      int           // to be sent in all; -1: none, and it does not close
	next     int           // messages handed to the engine
	log      []int         // ids delivered
	busy     time.Time     // until the last commit to come
	ended    []arq.Instruction
	acked    uint64    // number of the last unit acknowledged
	finished time.Time // when the last message was acknowledged
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

// submit hands messages to the engine, and closes after the last.
func (e *end) submit() {
	if e.engine != nil && !e.engine.Over() {
		for e.next < e.ids {
			if err := e.step(arq.Event{Kind: arq.Send, Message: e.body(e.next)}); err != nil {
				break
			}
			e.next++
			if e.plan.every > 0 {
				break
			}
		}
		if e.next == e.ids {
			_ = e.step(arq.Event{Kind: arq.Close}) // refused if it is closed
		}
		e.settle()
	}
	if e.engine == nil || !e.engine.Over() {
		e.w.After(max(e.plan.every, 50*time.Millisecond), e.submit)
	}
}

func (e *end) settle() {
	if e.engine != nil {
		_ = e.step(arq.Event{Kind: arq.Wake})
	}
}

// step does what the engine wants.
func (e *end) step(ev arq.Event) error {
	actions, err := e.engine.Step(e.w.Now, ev)
	var delivered []uint64
	for _, a := range actions {
		switch a.Kind {
		case arq.Transmit:
			e.transmit(a.Packet)
		case arq.WakeAt:
			e.alarm(a.At)
		case arq.Deliver:
			e.deliver(a)
			delivered = append(delivered, a.Number)
		case arq.Acknowledged:
			e.acked = a.Number
			if e.next == e.ids && e.acked == e.engine.Last() {
				e.finished = e.w.Now
			}
		case arq.Ended:
			e.ended = append(e.ended, a)
		}
	}
	for _, number := range delivered {
		e.commitLater(number)
	}
	return err
}

func (e *end) commitLater(number uint64) {
	if e.plan.commit == 0 {
		e.commit(number)
		return
	}
	at := e.w.Now.Add(time.Duration(e.w.rand.Int64N(int64(e.plan.commit))) + 1)
	if at.Before(e.busy) {
		at = e.busy // one after the other
	}
	e.busy = at
	e.w.After(at.Sub(e.w.Now), func() {
		e.commit(number)
		e.settle()
	})
}

func (e *end) commit(number uint64) {
	if err := e.step(arq.Event{Kind: arq.Committed, Number: number}); err != nil {
		e.w.failf("end %d: commit of %d: %v", e.index, number, err)
	}
}

// deliver looks at a message and notes it.
func (e *end) deliver(a arq.Instruction) {
	peer := e.w.ends[1-e.index]
	id := int(binary.BigEndian.Uint64(a.Message))
	if !bytes.Equal(a.Message, peer.body(id)) {
		e.w.failf("end %d: message %d is not what was sent", e.index, id)
	}
	e.log = append(e.log, id)
}

// alarm wakes the engine at a moment.
func (e *end) alarm(at time.Time) {
	if !at.IsZero() {
		e.w.After(max(at.Sub(e.w.Now), 0), e.settle)
	}
}

func (e *end) transmit(p *window.Packet) {
	datagram := p.Append(nil)
	if limit := e.plan.cfg.Datagram; limit > 0 && len(datagram) > limit {
		e.w.failf("end %d: a datagram of %d bytes", e.index, len(datagram))
	}
	e.w.bytes[e.index] += int64(len(datagram) + e.w.beside + 28)
	e.w.packets[e.index]++
	if e.w.mangle != nil {
		e.w.mangle(e.w, e.index, datagram)
	}
	for _, at := range e.w.paths[e.index].Send(e.w.Now, len(datagram)+e.w.beside) {
		e.w.After(at.Sub(e.w.Now), func() { e.w.ends[1-e.index].receive(datagram) })
	}
}

func (e *end) receive(datagram []byte) {
	if e.engine == nil {
		return
	}
	var p window.Packet
	if err := p.Parse(datagram); err != nil {
		e.w.failf("end %d: %v", e.index, err)
		return
	}
	if err := e.step(arq.Event{Kind: arq.Arrived, Packet: &p}); err != nil {
		e.w.failf("end %d refused %+v: %v", e.index, p, err)
	}
}
