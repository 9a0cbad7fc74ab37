package binary

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
)

// ErrLost tells of a segment that needs a memory which is gone, since what came before it on its lane was given up.
var ErrLost = errors.New("memory of the lane is lost")

var (
	packers   = sync.Pool{New: func() any { return new(shape.Packer) }}
	unpackers = sync.Pool{New: func() any { return new(shape.Unpacker) }}
)

// sendLanes are the memories of the sending direction, by lane. The writer's only, but for over.
type sendLanes struct {
	memories map[uint64]*laneMemory
	trials   map[uint64]*[2]trials // with Zstd: of texts, and of packed segments
	learned  map[uint64]learned    // by shape number, since the last epoch
	free     []*packPart

	mu   sync.Mutex
	over map[uint64]bool // lanes that restart with what is packed next
}

// receiveLanes are those of the receiving direction. The reader's only.
type receiveLanes struct {
	memories map[uint64]*receiveLane
	free     []*unpackPart
}

// laneMemory is the memory of a lane; folded while nobody uses it.
type laneMemory struct {
	open   *shape.Memory
	folded shape.Folded
}

// use gives the memory to be used.
func (m *laneMemory) use() *shape.Memory {
	if m.open == nil {
		m.open = new(shape.Memory)
		m.folded.Unfold(m.open)
	}
	return m.open
}

// fold makes it small.
func (m *laneMemory) fold() {
	if m.open != nil {
		m.folded, m.open = m.open.Fold(), nil
	}
}

// receiveLane is a lane that receives. used: since [Coder.Rested] was called.
type receiveLane struct {
	memory laneMemory
	epoch  uint64
	lost   bool
	used   bool
}

// learned is what parts under a shape took on lanes that remembered nothing of the shape, and on those that did.
type learned struct{ fresh, known cost }

type cost struct{ octets, parts int64 }

// price is how much more the fresh ones took.
func (l learned) price() int64 {
	if l.known.parts == 0 {
		return l.fresh.octets
	}
	return max(0, l.fresh.octets-l.fresh.parts*l.known.octets/l.known.parts)
}

// packPart is one part of a message that is being packed.
type packPart struct {
	c      *Coder
	number uint64
	// remembered: its lane is to remember it; fresh: the lane knows nothing of the shape yet.
	remembered, fresh bool
	p                 *shape.Program
	at                shape.Packing
	own               shape.Memory
	memory            *shape.Memory
	trials            *[2]trials
	pack              func(dst, segment []byte, text, last bool, most int) []byte
}

// Stages are those that this end can do.
func (c *Coder) Stages() uint64 {
	if c.opt.Text {
		return 0
	}
	stages := allStages &^ c.opt.Without
	if stages&Columns == 0 {
		stages &^= Memory
	}
	return stages
}

// Agree tells the stages of both hellos, before anything is packed.
func (c *Coder) Agree(stages uint64) { c.stages = stages }

// NewPack begins a part of an outgoing message, in the order of the frames. alone tells that the message is in one frame. The function it returns packs segment after segment, in at most most
// octets or one more than the segment has; text tells of one that is text (wire-format section 10.6). nil: segments under this number travel as they are.
func (c *Coder) NewPack(lane, number uint64, alone bool) func(dst, segment []byte, text, last bool, most int) []byte {
	var p *shape.Program
	if c.stages&Columns != 0 {
		p = c.send.program(number)
	}
	if p == nil && c.stages&Zstd == 0 {
		return nil
	}
	l := &c.sendLanes
	l.restart(lane)
	var part *packPart
	if n := len(l.free); n > 0 {
		part, l.free = l.free[n-1], l.free[:n-1]
	} else {
		part = &packPart{c: c}
		part.pack = part.run
	}
	part.p, part.number, part.remembered = p, number, false
	part.at.Reset()
	part.memory = &part.own
	if alone && p != nil && c.stages&Memory != 0 {
		part.memory = l.memory(lane)
		part.remembered, part.fresh = true, !part.memory.Knows(p)
	}
	if c.stages&Zstd != 0 {
		part.trials = l.trialsOf(lane)
	}
	return part.pack
}

func (l *sendLanes) trialsOf(lane uint64) *[2]trials {
	t := l.trials[lane]
	if t == nil {
		if l.trials == nil {
			l.trials = map[uint64]*[2]trials{}
		}
		t = new([2]trials)
		l.trials[lane] = t
	}
	return t
}

func (l *sendLanes) memory(lane uint64) *shape.Memory {
	m := l.memories[lane]
	if m == nil {
		if l.memories == nil {
			l.memories = map[uint64]*laneMemory{}
		}
		m = new(laneMemory)
		m.use().Drop() // whatever the peer remembers of the lane
		l.memories[lane] = m
	}
	return m.use()
}

// restart drops what is known of a lane, if that was asked for: the next packed segment on it resets the memory of the peer.
func (l *sendLanes) restart(lane uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over[lane] {
		delete(l.over, lane)
		delete(l.memories, lane)
		delete(l.trials, lane)
	}
}

func (t *packPart) run(dst, segment []byte, text, last bool, most int) []byte {
	from, packed := len(dst), t.p != nil && !text
	if packed {
		k := packers.Get().(*shape.Packer)
		dst = k.Pack(dst, t.p, &t.at, t.memory, segment, last, most)
		packers.Put(k)
	} else {
		dst = append(dst, segment...)
	}
	if t.trials != nil {
		sort := 0
		if packed {
			sort = 1
		}
		dst = t.c.book.compression.compress(dst, from, packed, &t.trials[sort])
	}
	if last {
		t.note(len(dst) - from)
		t.own.Reset()
		t.c.sendLanes.free = append(t.c.sendLanes.free, t)
	}
	return dst
}

// note counts what a part took.
func (t *packPart) note(octets int) {
	if !t.remembered {
		return
	}
	all := &t.c.sendLanes.learned
	if *all == nil {
		*all = map[uint64]learned{}
	}
	l := (*all)[t.number]
	c := &l.known
	if t.fresh {
		c = &l.fresh
	}
	c.octets += int64(octets)
	c.parts++
	(*all)[t.number] = l
}

// Price estimates how many octets it takes to say again what the next epoch ends: announcements, and what lanes remember.
func (c *Coder) Price() int64 {
	price := c.send.price()
	for _, l := range c.sendLanes.learned {
		price += l.price()
	}
	return price
}

// Restart has what comes next on a lane build on nothing that was sent on it before: since the peer gave up messages
// of it without reading them, or since the lane is another client's from now on. It may be called at any time.
func (c *Coder) Restart(lane uint64) {
	l := &c.sendLanes
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.over = map[uint64]bool{}
	}
	l.over[lane] = true
}

// unpackPart is one part of a message that comes in.
type unpackPart struct {
	c      *Coder
	p      *shape.Program
	at     shape.Packing
	own    shape.Memory
	lane   *receiveLane // nil: the part has its own memory
	begin  func(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error)
	unpack func(dst, packed []byte, text, last bool, most int) ([]byte, error)
}

// NewUnpack begins a part of an incoming message, under what number stands for now; nil: segments under it travel as they are. The function it returns is called lane by lane in the order of
// the frames; alone is as in NewPack, epoch counts the sync frames that came before the message's frame. What that returns unpacks segment after segment, to at most most octets each.
func (c *Coder) NewUnpack(number uint64) func(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error) {
	var p *shape.Program
	if r := c.receive.numbers[number]; r != nil && c.stages&Columns != 0 {
		p = r.program
	}
	if p == nil && c.stages&Zstd == 0 {
		return nil
	}
	l := &c.receiveLanes
	var part *unpackPart
	if n := len(l.free); n > 0 {
		part, l.free = l.free[n-1], l.free[:n-1]
	} else {
		part = &unpackPart{c: c}
		part.begin, part.unpack = part.start, part.run
	}
	part.p, part.lane = p, nil
	part.at.Reset()
	return part.begin
}

func (t *unpackPart) start(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error) {
	if alone && t.p != nil && t.c.stages&Memory != 0 {
		t.lane = t.c.receiveLanes.lane(lane, epoch)
	}
	return t.unpack
}

func (l *receiveLanes) lane(lane, epoch uint64) *receiveLane {
	r := l.memories[lane]
	if r == nil {
		if l.memories == nil {
			l.memories = map[uint64]*receiveLane{}
		}
		r = &receiveLane{epoch: epoch}
		l.memories[lane] = r
	}
	if r.epoch != epoch {
		*r = receiveLane{epoch: epoch}
	}
	r.used = true
	return r
}

func (t *unpackPart) run(dst, packed []byte, text, last bool, most int) (out []byte, err error) {
	if t.c.stages&Zstd == 0 {
		out, err = t.unpackSegment(dst, packed, text, last, most)
	} else {
		err = t.c.book.compression.Expand(packed, t.p != nil && !text, func(segment []byte) (err error) {
			out, err = t.unpackSegment(dst, segment, text, last, most)
			return err
		})
	}
	if last {
		t.own.Reset()
		t.c.receiveLanes.free = append(t.c.receiveLanes.free, t)
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (t *unpackPart) unpackSegment(dst, packed []byte, text, last bool, most int) ([]byte, error) {
	if t.p == nil || text {
		if len(packed) > most {
			return dst, fmt.Errorf("segment of %d octets", len(packed))
		}
		return append(dst, packed...), nil
	}
	memory := &t.own
	if t.lane != nil {
		memory = t.lane.memory.use()
		if t.lane.lost = t.lane.lost && !shape.Resets(packed); t.lane.lost && shape.Packed(packed) {
			return dst, ErrLost
		}
	}
	u := unpackers.Get().(*shape.Unpacker)
	defer unpackers.Put(u)
	return u.Unpack(dst, t.p, &t.at, memory, packed, last, most)
}

// IsLost tells an [ErrLost] from a malformed segment.
func (c *Coder) IsLost(err error) bool { return errors.Is(err, ErrLost) }

// GiveUp tells that messages of a lane are dropped unread: what follows on it cannot be unpacked before the other end resets the lane's memory.
func (c *Coder) GiveUp(lane, epoch uint64) { c.receiveLanes.lane(lane, epoch).lost = true }

// mostFolded is how large the memory of a lane may be while the lane is idle, in octets.
const mostFolded = 4 << 10

// Rest makes the memory of a lane that sends small, as the lane is idle; it reports whether it was too large for that, and
// was given back. The first packed segment of a memory resets that of the peer, so that nothing must be known of it.
func (c *Coder) Rest(lane uint64) (given bool) {
	m := c.sendLanes.memories[lane]
	if m == nil {
		return false
	}
	if m.fold(); m.folded.Size() <= mostFolded {
		return false
	}
	delete(c.sendLanes.memories, lane)
	delete(c.sendLanes.trials, lane)
	return true
}

// Rested makes the memories of lanes small on which nothing came since the last call; it reports whether others are left.
func (c *Coder) Rested() (left bool) {
	for _, r := range c.receiveLanes.memories {
		if r.used {
			r.used, left = false, true
		} else {
			r.memory.fold()
		}
	}
	return left
}

// Idled tells that the peer has given the memory of a lane back that sends here.
func (c *Coder) Idled(lane uint64) { delete(c.receiveLanes.memories, lane) }

// Synced tells that a sync frame came: it ends the memory of all lanes but those that keep names, whose earlier messages are still to be unpacked.
func (c *Coder) Synced(keep func(lane uint64) bool) {
	for lane := range c.receiveLanes.memories {
		if !keep(lane) {
			delete(c.receiveLanes.memories, lane)
		}
	}
}
