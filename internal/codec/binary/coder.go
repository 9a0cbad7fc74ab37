package binary

import (
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// Coder is the codec of one stream: it cuts messages by the shapes of its book, learns new ones,
// and knows which of them the peer has. Its methods may be called concurrently.
type Coder struct {
	book   *Book
	opt    Options
	recent carriedShapes
	unread unread

	learning allowances
	learners atomic.Int32 // messages of which more than a window is kept
	counts   counters
	shared   atomic.Bool // the peer has the description, too

	mu        sync.Mutex
	peerKnows few.Map[Fingerprint, bool] // true: for sure, since this stream carried the shape one way or the other
	// last are those that the peer has, found last, of a body and of a head; nil: none. Changed
	// under mu.
	last [2]atomic.Pointer[program.Program]

	heads [lastHeads]laneHeads // by lane
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
	c := &Coder{book: b, opt: opt}
	c.shared.Store(opt.Shared)
	for _, fp := range opt.PeerKnows {
		c.peerKnows.Put(fp, false)
	}
	c.unread.names = opt.PeerKnows
	return c
}

// Stages are what this end can do to content on its way (docs/wire-format.md, section 10).
func (c *Coder) Stages() uint64 {
	if c.opt.Text {
		return 0
	}
	without := c.opt.Without
	if without&wire.Columns != 0 {
		without |= wire.Memory
	}
	if without&wire.Zstd != 0 {
		without |= wire.Plain
	}
	return (wire.Columns | wire.Memory | wire.Zstd | wire.Plain) &^ without
}

// Compression is what all streams of the book share.
func (c *Coder) Compression() *wire.Compression { return &c.book.compression }

// Has reports whether the peer has a shape, or reads the store; sure: this stream carried it.
func (c *Coder) Has(fp shape.Fingerprint) (has, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sure, has = c.peerKnows.Find(fp)
	return has || c.opt.Refer, sure
}

// Learned notes that the peer has a shape for sure.
func (c *Coder) Learned(p *program.Program) {
	c.recent.keep(p, &c.opt)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerKnows.Len() >= maxPeerKnows {
		c.peerKnows = few.Map[Fingerprint, bool]{} // they are sent in full once more
		c.last = [2]atomic.Pointer[program.Program]{}
	}
	c.peerKnows.Put(p.Shape().Fingerprint(), true)
}

// PeerHas lists shapes that the peer has for sure, at most so many, those carried last at the end.
func (c *Coder) PeerHas(most int) []shape.Fingerprint { return c.recent.last(most) }

// Find gives a shape that the peer refers to; nil if it is not here.
func (c *Coder) Find(fp shape.Fingerprint) *program.Program {
	p, _ := c.Look(fp)
	return p
}

// Look is Find with the reason why a shape is not here: an [Error] is what the store says, which
// may be that it failed; other errors are that what it has is damaged.
func (c *Coder) Look(fp shape.Fingerprint) (p *program.Program, err error) {
	if p = c.recent.find(fp); p == nil {
		if p, err = c.book.find(fp); err != nil {
			return nil, err
		}
	}
	c.Learned(p)
	return p, nil
}

// Keep takes a shape that came, and stores it, if the store takes it.
func (c *Coder) Keep(s *shape.Shape) *program.Program {
	p, err := c.book.Keep(s)
	if err != nil {
		c.book.Log.Warn("shape not stored: what this stream carries cannot be decoded later by the store alone",
			"shape", s.Fingerprint().URI(), "err", err)
		p = c.book.add(s)
	}
	c.Learned(p)
	return p
}

// CoderCounts are what a coder's Split has done so far.
type CoderCounts struct {
	// Learned are shapes made of a message of a new kind, Widened those made of one that did not
	// fit the shape of its kind.
	Learned, Widened int64
	// Texts are parts that travelled as text, from the start or from some place on.
	Texts int64
	// Exceptions are values that travelled as text, since theirs is not the canonical one of their
	// type.
	Exceptions int64
	// Drifted are messages that were not as their description says.
	Drifted int64
}

type counters struct{ learned, widened, texts, exceptions, drifted atomic.Int64 }

// Counts tells what was done so far.
func (c *Coder) Counts() CoderCounts {
	n := &c.counts
	return CoderCounts{n.learned.Load(), n.widened.Load(), n.texts.Load(), n.exceptions.Load(), n.drifted.Load()}
}
