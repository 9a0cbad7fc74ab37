package binary

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/shape"
)

// Book holds the shapes one end knows, compiled, over all its streams. It is safe for concurrent use.
type Book struct {
	// Log hears of shapes that could not be stored. NewBook sets one that drops everything.
	Log *slog.Logger

	store Shapes

	mu     sync.Mutex
	known  map[Fingerprint]*page
	index  map[string]*shelf // by kind and leading text
	sizes  []int             // lengths of leading texts in use, longest first
	counts map[int]int       // pages per length
	bytes  int
	turn   uint64
}

// page is one shape in the book.
type page struct {
	program *shape.Program
	key     string
	head    bool
	used    uint64
}

// shelf holds the pages of one leading text, the last that fitted first.
type shelf struct{ pages []*page }

// NewBook makes an empty book over a store, to which every shape it learns is written before it is used.
func NewBook(store Shapes) *Book {
	return &Book{Log: slog.New(slog.DiscardHandler), store: store, known: map[Fingerprint]*page{}, index: map[string]*shelf{}, counts: map[int]int{}}
}

func storeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), storeTimeout*time.Second)
}

// Load reads shapes from the store, so that messages are tried on them. Those that are not there, or damaged, are passed over.
func (b *Book) Load(ctx context.Context, fps []Fingerprint) {
	for _, fp := range fps {
		if octets, err := b.store.Get(ctx, fp); err == nil {
			if s, err := shape.Parse(octets); err == nil {
				b.add(s)
			}
		}
	}
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

// Program gives the compiled shape behind a fingerprint, from the book or the store. It is false if neither has it.
func (b *Book) Program(fp Fingerprint) (*shape.Program, bool) {
	b.mu.Lock()
	p, ok := b.known[fp]
	b.mu.Unlock()
	if ok {
		return p.program, true
	}
	ctx, cancel := storeContext()
	defer cancel()
	octets, err := b.store.Get(ctx, fp)
	if err != nil {
		return nil, false
	}
	s, err := shape.Parse(octets)
	if err != nil || s.Fingerprint() != fp {
		return nil, false
	}
	return b.add(s), true
}

// Keep writes a shape to the store and adds it to the book.
func (b *Book) Keep(s *shape.Shape) (*shape.Program, error) {
	ctx, cancel := storeContext()
	defer cancel()
	if _, err := b.store.Put(ctx, s.Octets()); err != nil {
		return nil, &Error{Code: Store, Err: err}
	}
	return b.add(s), nil
}

// isHead tells shapes of HTTP heads from those of bodies: a body begins with markup or a byte order mark.
func isHead(p *shape.Program) bool {
	leads := p.Leads()
	return len(leads) > 0 && leads[0] != '<' && leads[0] < 0x80
}

func (b *Book) add(s *shape.Shape) *shape.Program {
	fp := s.Fingerprint()
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.known[fp]; ok {
		return p.program
	}
	b.turn++
	p := &page{program: shape.Compile(s), used: b.turn}
	p.head = isHead(p.program)
	p.key = string(p.program.Leads())
	b.known[fp] = p
	b.bytes += len(s.Octets())
	sh := b.index[p.key]
	if sh == nil {
		sh = &shelf{}
		b.index[p.key] = sh
	}
	sh.pages = slices.Insert(sh.pages, 0, p)
	if b.counts[len(p.key)]++; b.counts[len(p.key)] == 1 {
		b.sizes = append(b.sizes, len(p.key))
		slices.SortFunc(b.sizes, func(x, y int) int { return y - x })
	}
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
	b.bytes -= len(p.program.Shape().Octets())
	sh := b.index[p.key]
	sh.pages = slices.DeleteFunc(sh.pages, func(q *page) bool { return q == p })
	if len(sh.pages) == 0 {
		delete(b.index, p.key)
	}
	if b.counts[len(p.key)]--; b.counts[len(p.key)] == 0 {
		b.sizes = slices.DeleteFunc(b.sizes, func(n int) bool { return n == len(p.key) })
	}
}

// candidates appends the programs whose leading text the message begins with, the longest text first, at most maxTries.
func (b *Book) candidates(dst []*shape.Program, beginning []byte, head bool) []*shape.Program {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.sizes {
		if n > len(beginning) {
			continue
		}
		sh := b.index[string(beginning[:n])]
		if sh == nil {
			continue
		}
		for _, p := range sh.pages {
			if p.head != head {
				continue
			}
			if dst = append(dst, p.program); len(dst) == maxTries {
				return dst
			}
		}
	}
	return dst
}

// touch notes that a program fitted.
func (b *Book) touch(program *shape.Program) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.known[program.Shape().Fingerprint()]
	if !ok {
		return
	}
	b.turn++
	p.used = b.turn
	pages := b.index[p.key].pages
	if i := slices.Index(pages, p); i > 0 {
		copy(pages[1:i+1], pages[:i])
		pages[0] = p
	}
}
