package binary

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wire"
)

// Book holds the shapes one end knows, compiled, over all its streams. It is safe for concurrent
// use.
type Book struct {
	// Log hears of shapes that could not be stored. NewBook sets one that drops everything.
	Log *slog.Logger
	// Without are stages that no coder of this book does, whatever its options say. It is set
	// before the first coder is made.
	Without uint64

	store       Shapes
	compression wire.Compression

	mu       sync.Mutex
	known    map[Fingerprint]*bookPage
	bodies   leadIndex
	heads    leadIndex
	marks    map[uint64]Fingerprint // of bodies whose shapes begin as many others do
	bytes    int
	turn     uint64
	last     [2]atomic.Pointer[program.Program] // body and head that fitted last, and no page came since; nil: none
	families families
	drifted  atomic.Int64
}

// bookPage is one shape in the book.
type bookPage struct {
	program *program.Program
	key     string
	used    uint64
	index   *leadIndex
	retired bool // a wider shape has taken its place: it is known, but no message is tried on it
	cost    int  // bytes of its packed form without a base, so at most what it takes to send it; 0: not known yet
	missed  int  // bytes of the parts that did without it, since it was not worth that

	described bool         // it was made by a description
	own       *shape.Shape // of that description; nil: it has none
	broken    bool         // it was made of a message that is not as it is described
}

// NewBook makes an empty book over a store, to which every shape it learns is written before it is
// used.
func NewBook(store Shapes) *Book {
	return &Book{Log: slog.New(slog.DiscardHandler), store: store, known: map[Fingerprint]*bookPage{}}
}

func storeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), storeTimeout*time.Second)
}

// load reads those shapes from the store that are not in the book, so that messages are tried on
// them, and returns how many it read. Shapes that the store lacks, or that are damaged, are passed
// over.
func (b *Book) load(ctx context.Context, fps []Fingerprint) (read int) {
	var programs []*program.Program
	for _, fp := range slices.Backward(fps) {
		if b.here(fp) != nil {
			continue
		}
		if p, err := b.read(ctx, fp); err == nil {
			programs = append(programs, p)
		}
	}
	for _, p := range slices.Backward(programs) {
		b.touch(p, isHead(p))
	}
	return len(programs)
}

// Known lists the shapes in the book, those used last first, at most most.
func (b *Book) Known(most int) (fps []Fingerprint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fps = slices.SortedFunc(maps.Keys(b.known), func(x, y Fingerprint) int {
		if d := int64(b.known[y].used) - int64(b.known[x].used); d != 0 {
			return int(d)
		}
		return bytes.Compare(x[:], y[:])
	})
	return fps[:min(most, len(fps))]
}

// Program gives the compiled shape behind a fingerprint, from the book or the store. It is false if
// neither has it.
func (b *Book) Program(fp Fingerprint) (*program.Program, bool) {
	p, err := b.find(fp)
	return p, err == nil
}

// find is Program, and why neither has it: an [Error] of the store, or what is wrong with the
// shape.
func (b *Book) find(fp Fingerprint) (*program.Program, error) {
	if p := b.here(fp); p != nil {
		return p, nil
	}
	ctx, cancel := storeContext()
	defer cancel()
	return b.read(ctx, fp)
}

// here gives the compiled shape behind a fingerprint; nil if it is not in the book.
func (b *Book) here(fp Fingerprint) *program.Program {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.known[fp]; p != nil {
		return p.program
	}
	return nil
}

// read adds the shape behind a fingerprint to the book, from the store.
func (b *Book) read(ctx context.Context, fp Fingerprint) (*program.Program, error) {
	octets, err := b.store.Get(ctx, fp)
	if err != nil {
		return nil, &Error{Err: err}
	}
	s, err := shape.Parse(octets)
	if err == nil && s.Fingerprint() != fp {
		err = errors.New("another shape is in its place")
	}
	if err != nil {
		return nil, err
	}
	return b.add(s), nil
}

// Keep writes a shape to the store and adds it to the book.
func (b *Book) Keep(s *shape.Shape) (*program.Program, error) {
	ctx, cancel := storeContext()
	defer cancel()
	if _, err := b.store.Put(ctx, s.Octets()); err != nil {
		return nil, &Error{Err: err}
	}
	return b.add(s), nil
}

// isHead tells shapes of HTTP heads from those of bodies: a body begins with markup or a byte order
// mark.
func isHead(p *program.Program) bool {
	leads := p.Leads()
	return len(leads) > 0 && leads[0] != '<' && leads[0] > 0 && leads[0] < 0x80
}

func (b *Book) add(s *shape.Shape) *program.Program {
	fp := s.Fingerprint()
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.known[fp]; ok {
		return p.program
	}
	b.turn++
	b.last[0].Store(nil)
	b.last[1].Store(nil)
	p := &bookPage{program: program.Compile(s), used: b.turn, index: &b.bodies}
	if isHead(p.program) {
		p.index = &b.heads
	}
	p.key = string(p.program.Leads())
	p.index.add(p)
	b.known[fp] = p
	b.bytes += p.program.Size()
	for len(b.known) > bookShapes || b.bytes > bookBytes {
		b.evict()
	}
	return p.program
}

// evict forgets the page used longest ago; the store still has its shape.
func (b *Book) evict() {
	var oldest Fingerprint
	least := ^uint64(0)
	for fp, p := range b.known {
		if p.used < least {
			oldest, least = fp, p.used
		}
	}
	p := b.known[oldest]
	delete(b.known, oldest)
	b.bytes -= p.program.Size()
	p.index.remove(p)
}

// retire has no further message tried on a shape, since a wider one is there.
func (b *Book) retire(fp Fingerprint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.known[fp]; p != nil && !p.retired {
		p.retired = true
		p.index.remove(p)
	}
}

// candidates appends the programs whose leading text the message begins with, the longest text
// first, at most maxTries.
func (b *Book) candidates(dst []*program.Program, beginning []byte, head bool) []*program.Program {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &b.bodies
	if head {
		x = &b.heads
	}
	return x.find(dst, beginning)
}

// mayBegin reports whether a body that goes on may yet begin as those of a known shape do.
func (b *Book) mayBegin(beginning []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bodies.goesOn(beginning)
}

// Drifted is how many messages were not as their description says, over all streams.
func (b *Book) Drifted() int64 { return b.drifted.Load() }

// describe notes what a shape was made by; nil: by no description.
func (b *Book) describe(s *shape.Shape, d *Described) {
	if d == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.known[s.Fingerprint()]; p != nil {
		p.described, p.own, p.broken = true, d.Own, d.Broken
	}
}

// described reports whether a shape was made by a description, and of a message that is not as that
// says.
func (b *Book) described(fp Fingerprint) (is, broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.known[fp]
	return p != nil && p.described, p != nil && p.broken
}

// ownOf is the own shape of what a shape was made by; nil if there is none.
func (b *Book) ownOf(fp Fingerprint) *shape.Shape {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.known[fp]; p != nil {
		return p.own
	}
	return nil
}

// worth reports whether a shape may be sent that the peer lacks, for a part of n bytes that
// it fits: it must not be longer than half of that, and the parts that did without it before. One
// that grew by all messages of a kind may be longer than many a message.
func (c *Coder) worth(by *program.Program, n int) bool { return c.worthOf(by, n, 1) }

// worthInstead is for one that a text need not announce: it must be a quarter of that, unless the
// peer has what it was declared by, after which the kind widens no more.
func (c *Coder) worthInstead(by *program.Program, n int) bool {
	if c.Own(by) != nil {
		return c.worth(by, n)
	}
	return c.worthOf(by, n, 4)
}

func (c *Coder) worthOf(by *program.Program, n, share int) bool {
	b, fp := c.book, by.Shape().Fingerprint()
	b.mu.Lock()
	p := b.known[fp]
	measured := p != nil && p.cost > 0
	b.mu.Unlock()
	cost := 0
	if !measured {
		cost = len(transit.Pack(nil, by.Shape().Octets(), nil))
		if own := c.Own(by); own != nil {
			cost = min(cost, len(transit.PackOwn(nil, by.Shape().Octets(), own)))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p = b.known[fp]; p == nil {
		return cost <= n/2/share
	}
	if !measured {
		p.cost = cost
	}
	if p.cost <= (p.missed+n/2)/share {
		return true
	}
	p.missed += n
	return false
}

// miss notes that a part of n bytes did without a shape that it fits.
func (b *Book) miss(by *program.Program, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.known[by.Shape().Fingerprint()]; p != nil {
		p.missed += n
	}
}

// kindOf is the index of what there is for bodies and for heads.
func kindOf(head bool) int {
	if head {
		return 1
	}
	return 0
}

// touch notes that a program fitted.
func (b *Book) touch(by *program.Program, head bool) {
	last := &b.last[kindOf(head)]
	if last.Load() == by {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.known[by.Shape().Fingerprint()]
	if !ok {
		return
	}
	b.turn++
	p.used = b.turn
	last.Store(by)
	p.index.first(p)
}
