package binary

import (
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
)

// Coder is the codec of one stream. Split may be called concurrently; the methods of the sending table by one goroutine, those of the receiving table by
// another; the functions that NewJoin returns by any, one at a time.
type Coder struct {
	book *Book
	opt  Options

	send    sendTable
	receive receiveTable
	recent  recent
	bases   struct{ sent, received bases }

	stages       uint64
	sendLanes    sendLanes
	receiveLanes receiveLanes

	learning allowances
	counts   counters

	mu        sync.Mutex
	peerKnows map[Fingerprint]bool // true: for sure, since this stream carried the shape one way or the other
}

// Coder makes the codec of a new stream.
func (b *Book) Coder(opt Options) *Coder {
	opt.Without |= b.Without
	if opt.MaxShapes == 0 {
		opt.MaxShapes = defaultShapes
	}
	if opt.MaxShapeBytes == 0 {
		opt.MaxShapeBytes = defaultShapeBytes
	}
	opt.MaxShapes, opt.MaxShapeBytes = max(opt.MaxShapes, shapesBeforeHello), max(opt.MaxShapeBytes, octetsBeforeHello)
	c := &Coder{book: b, opt: opt, peerKnows: map[Fingerprint]bool{}}
	for _, fp := range opt.PeerKnows {
		c.peerKnows[fp] = false
	}
	c.send.init()
	for i := range c.learning {
		c.learning[i].left.Store(allowanceMost)
	}
	c.receive.numbers = map[uint64]*received{}
	return c
}

// PeerLimits tells what the other end's hello states: how many shapes it keeps at a time, and octets of their serializations. Until then its table is taken to hold 16 shapes of 64 KiB together (wire-format section 3).
func (c *Coder) PeerLimits(shapes int, octets int64) {
	c.send.limits(min(shapes, defaultShapes), octets)
}

// knows tells whether the other end has a shape, and whether that is sure.
func (c *Coder) knows(fp Fingerprint) (knows, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sure, knows = c.peerKnows[fp]
	return knows, sure
}

// peerHas tells whether the other end has a shape, or reads the store.
func (c *Coder) peerHas(p *shape.Program) bool {
	knows, _ := c.knows(p.Shape().Fingerprint())
	return knows || c.opt.Refer
}

// learned notes that the other end has a shape for sure.
func (c *Coder) learned(fp Fingerprint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.peerKnows) >= maxPeerKnows {
		clear(c.peerKnows) // they are sent in full once more
	}
	c.peerKnows[fp] = true
}

// Counts are what a coder's Split has done so far.
type Counts struct {
	// Learned are shapes made of a message of a new kind, Widened those made of one that did not fit the shape of its kind.
	Learned, Widened int64
	// Texts are parts that travelled as text, from the start or from some place on.
	Texts int64
	// Exceptions are values that travelled as text, since theirs is not the canonical one of their type.
	Exceptions int64
}

type counters struct{ learned, widened, texts, exceptions atomic.Int64 }

// Counts tells what was done so far.
func (c *Coder) Counts() Counts {
	n := &c.counts
	return Counts{n.learned.Load(), n.widened.Load(), n.texts.Load(), n.exceptions.Load()}
}

// Announce tells what must be written before number is used: nothing if ok is false, a reference if full is nil, else the packed shape.
func (c *Coder) Announce(number uint64) (fp Fingerprint, full []byte, ok bool) {
	s := c.send.announce(number)
	if s == nil {
		return fp, nil, false
	}
	fp = s.Fingerprint()
	if knows, sure := c.knows(fp); c.opt.Refer || sure || knows && c.send.pin(number) {
		return fp, nil, true
	}
	c.learned(fp)
	return fp, c.bases.sent.pack(s, true), true
}

// Epoch ends the memory of all lanes, and all announcements but those it yields, ascending: of the shapes used more than once since the last epoch, and those of open messages.
func (c *Coder) Epoch(open map[uint64]int, yield func(number uint64, fp Fingerprint)) {
	clear(c.sendLanes.memories)
	clear(c.sendLanes.trials)
	clear(c.sendLanes.learned)
	c.send.epoch(open, yield, func(p *shape.Program) { c.recent.keep(p, &c.opt) })
}

// placeholder is a shape that no message has.
var placeholder = sync.OnceValues(func() (*shape.Shape, error) { return shape.Learn([]byte("<placeholder/>")) })

// Lacks tells that the other end lacks the shape of number; it returns the packed shape. For a number that stands for nothing any more, as the asking took very long, it is a
// placeholder: the other end then refuses what it holds as not processed, where it would wait for ever.
func (c *Coder) Lacks(number uint64) ([]byte, error) {
	s := c.send.shape(number)
	if s == nil {
		s, err := placeholder()
		if err != nil {
			return nil, err
		}
		return c.bases.sent.pack(s, false), nil
	}
	c.send.unpin(number)
	c.learned(s.Fingerprint())
	return c.bases.sent.pack(s, false), nil
}

// Refer says that number stands for the shape fp; known is false if this end has no such shape.
func (c *Coder) Refer(number uint64, fp Fingerprint) (known bool, err error) {
	p := c.recent.find(fp)
	if p == nil {
		var known bool
		if p, known = c.book.Program(fp); !known {
			return false, c.set(number, nil)
		}
	}
	c.learned(fp)
	return true, c.set(number, p)
}

// set has a number of the other end's stand for a shape, and keeps the one before for a while.
func (c *Coder) set(number uint64, p *shape.Program) error {
	if old := c.receive.forget(number); old != nil && old != p {
		c.recent.keep(old, &c.opt)
	}
	return c.receive.set(number, p, &c.opt)
}

// Define says that number stands for this packed shape, which is in the store before Define returns, if that takes it; fp is its fingerprint.
func (c *Coder) Define(number uint64, packed []byte) (fp Fingerprint, err error) {
	octets, err := transit.Unpack(packed, c.bases.received.find)
	if err != nil {
		return fp, &Error{Code: BadShape, Number: number, Err: err}
	}
	s, err := shape.Parse(octets)
	if err != nil {
		return fp, &Error{Code: BadShape, Number: number, Err: err}
	}
	p, err := c.book.Keep(s)
	if err != nil {
		c.book.Log.Warn("shape not stored: what this stream carries cannot be decoded later by the store alone", "shape", s.Fingerprint().URI(), "err", err)
		p = c.book.add(s)
	}
	c.learned(s.Fingerprint())
	c.bases.received.keep(s, len(packed), sketch{})
	return s.Fingerprint(), c.set(number, p)
}

// Known tells whether number was announced, and whether its shape is there.
func (c *Coder) Known(number uint64) (known, announced bool) {
	r, announced := c.receive.numbers[number]
	return announced && r.program != nil, announced
}

// Forget gives up what number stands for. Parts that began go on.
func (c *Coder) Forget(number uint64) {
	if p := c.receive.forget(number); p != nil {
		c.recent.keep(p, &c.opt)
	}
}

// joiners are reused: their buffers have the size of the messages of all streams.
var joiners = sync.Pool{New: func() any { return new(shape.Joiner) }}

// NewJoin begins a part of a message. The function it returns joins segment after segment.
func (c *Coder) NewJoin(number uint64) (func(dst, segment []byte, text, last bool) ([]byte, error), error) {
	if number == 0 {
		return joinText, nil
	}
	r := c.receive.numbers[number]
	if r == nil || r.program == nil {
		return nil, &Error{Code: Unannounced, Number: number}
	}
	var j *shape.Joiner
	program := r.program
	return func(dst, segment []byte, text, last bool) ([]byte, error) {
		if j == nil {
			j = joiners.Get().(*shape.Joiner)
			j.Reset(program)
		}
		dst, err := j.Join(dst, segment, text, last)
		if last && err == nil {
			joiners.Put(j)
			j = nil
		}
		return dst, err
	}, nil
}

func joinText(dst, segment []byte, _, _ bool) ([]byte, error) { return append(dst, segment...), nil }
