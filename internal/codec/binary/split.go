package binary

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// Split cuts one message of a lane into segments. It belongs to one goroutine at a time.
type Split struct {
	c        *Coder
	lane     uint64
	learning *allowance // of the lane
	most     int
	emit     wire.Emit

	does     splitState
	splitter program.Splitter
	program  *program.Program // the body is cut by; nil: none is chosen, or it travels as text
	window   []byte           // of the body: what waits for a shape to be chosen, or as text for a segment to be full
	upTo     int              // how much waits for a shape at most
	heads    *laneHeads       // of the lane
	clients  uint32           // that those had before
	begun    bool             // the first segment of the body was handed out
	escaped  bool             // the body goes on as text
	cut      []byte           // of a body that travels as text since an early flush: for learning, when it is whole
	learns   bool
	slot     bool // it has one of Coder.learners

	// Segments of an attempt, one behind the other; or that which may be the last of the body.
	content    []byte
	ends       []int
	holding    bool
	heldText   bool
	candidates []*program.Program
	mark       uint64             // of the body, if there were many; else 0
	fresh      []*program.Program // those that fit, and that the peer lacks

	collect, pass func(text bool, segment []byte) error // methods, without an allocation for each message
}

type splitState uint8

const (
	gathering splitState = iota // no shape is chosen yet
	cutting
	texting
	closing // cutting, and nothing follows
)

var splits = sync.Pool{New: func() any {
	s := &Split{window: make([]byte, 0, 4096)}
	s.collect, s.pass = s.collected, s.passed
	return s
}}

// Split begins to cut a message of a lane into segments of at most most bytes, each of which is
// handed to emit, in order. What fits no known shape makes one, or travels as text.
func (c *Coder) Split(lane uint64, most int, emit wire.Emit) wire.SplitStep {
	s := splits.Get().(*Split)
	s.c, s.lane, s.learning, s.most, s.emit = c, lane, c.learning.of(lane), most, emit
	s.heads = &c.heads[lane%lastHeads]
	s.clients = s.heads.clients.Load()
	s.does, s.program, s.window, s.upTo, s.mark = gathering, nil, s.window[:0], window, 0
	s.begun, s.escaped, s.learns, s.holding, s.slot = false, false, false, false, false
	return s
}

// Free gives the buffers back; nothing of the split is used after it.
func (s *Split) Free() {
	s.leaveLearners()
	s.c, s.learning, s.heads, s.emit, s.program, s.cut = nil, nil, nil, nil, nil, nil
	clear(s.candidates)
	clear(s.fresh)
	if cap(s.window) <= window && cap(s.content) <= 4*window {
		splits.Put(s)
	}
}

// Restart gives a lane to another client: see [wire.Coder].
func (c *Coder) Restart(lane uint64) { c.heads[lane%lastHeads].clients.Add(1) }

// laneHeads is the head that was cut last of some lanes.
type laneHeads struct {
	clients atomic.Uint32 // that the lanes had before
	last    atomic.Pointer[headCut]
}

// headCut is a head that was cut, and into what: the next one of its client on its lane is mostly
// the same.
type headCut struct {
	lane    uint64
	clients uint32
	head    string
	program *program.Program
	content []byte
}

const (
	// lastHeads is of how many lanes the last head is kept.
	lastHeads = 4
	// maxLastHead is the longest head that is kept, in bytes.
	maxLastHead = 2 << 10
)

// Head cuts the head, before the body.
func (s *Split) Head(head []byte) error {
	last := s.heads.last.Load()
	if last != nil && last.lane == s.lane && last.clients == s.clients && last.head == string(head) &&
		len(last.content) <= s.most && s.c.has(s.fitted(last.program, true), true) {
		return s.emit(true, wire.Part{There: true, First: true, Last: true, Lasting: true, Program: last.program,
			Content: last.content})
	}
	p := s.find(head, true, true)
	if p != nil && len(s.ends) == 1 && len(head) <= maxLastHead {
		s.heads.last.Store(&headCut{s.lane, s.clients, string(head), p, bytes.Clone(s.content)})
	}
	if p == nil && !s.c.opt.Text {
		p = s.learnHead(head)
	}
	if p == nil {
		return s.texts(true, head, true)
	}
	return s.handOut(true, p, true)
}

// All cuts the body at once; it takes the place of Write and Close.
func (s *Split) All(body []byte) error {
	p := s.choose(body, true)
	if p == nil {
		s.c.counts.texts.Add(1)
		return s.texts(false, body, true)
	}
	s.countExceptions()
	s.drifts(p, body)
	return s.handOut(false, p, true)
}

func (s *Split) countExceptions() {
	if n := s.splitter.Exceptions(); n > 0 {
		s.c.counts.exceptions.Add(int64(n))
	}
}

// Write goes on with the body.
func (s *Split) Write(octets []byte) error {
	if s.does == cutting {
		return s.splitter.Write(octets)
	}
	s.window = append(s.roomFor(len(octets)), octets...)
	if s.does == gathering && len(s.window) >= s.upTo {
		return s.decide()
	}
	if s.does == texting {
		s.remember(octets)
		return s.drain(s.most)
	}
	return nil
}

// roomFor gives the window with room for n more bytes: four times as much as it had if it waits to
// become long, but no more than it may.
func (s *Split) roomFor(n int) []byte {
	least := len(s.window) + n
	if least <= cap(s.window) {
		return s.window
	}
	return append(make([]byte, 0, max(least, min(4*len(s.window), s.upTo))), s.window...)
}

// decide chooses a shape by the beginning of a body, or finds out that more must be seen.
func (s *Split) decide() error {
	if s.upTo == window && s.c.mayLearn(s.learning) && s.find(s.window, false, false) == nil &&
		!insideValue(s.window) && s.enterLearners() {
		s.upTo = learnWindow
		if len(s.window) < learnWindow {
			return nil
		}
	}
	return s.begin(s.choose(s.window, false))
}

// begin goes on by a program that fits the body so far, nil: as text. The rest may take its time,
// also what of that is handed out, for which a place of learners is held meanwhile: it gives back
// the space that the beginning took.
func (s *Split) begin(p *program.Program) error {
	defer func() {
		if !s.learns {
			s.leaveLearners()
		}
	}()
	if p == nil {
		s.does = texting
		s.c.counts.texts.Add(1)
		s.content = nil
		err := s.drain(s.most)
		if cap(s.window) > 2*window {
			s.window = append(make([]byte, 0, window), s.window...)
		}
		return err
	}
	s.does, s.program = cutting, p
	s.drifts(p, nil)
	s.window = nil
	err := s.handOut(false, p, false)
	s.content = nil
	s.splitter.Lenient()
	s.splitter.Emit(s.pass)
	return err
}

// Flush hands out what was written so far; see [wire.SplitStep].
func (s *Split) Flush(force bool) (settled int64, err error) {
	if s.does == gathering {
		if len(s.window) == 0 {
			return 0, nil
		}
		p := s.find(s.window, false, false)
		if p == nil && !force && !s.c.opt.Text && s.c.book.mayBegin(s.window) {
			return 0, nil
		}
		if p == nil && s.c.mayLearn(s.learning) && s.enterLearners() {
			s.learns = true
			s.remember(s.window)
		}
		if err := s.begin(p); err != nil {
			return 0, err
		}
	}
	if s.does == texting {
		return 0, s.drain(1)
	}
	return s.splitter.Flush(force)
}

// Close ends the body.
func (s *Split) Close() error {
	switch s.does {
	case gathering:
		return s.All(s.window)
	case texting:
		if s.learns {
			s.learnCut()
		}
		return s.texts(false, s.window, true)
	case cutting, closing:
	}
	s.does = closing
	err := s.splitter.Close()
	s.countExceptions()
	if err != nil {
		return err
	}
	if !s.holding {
		s.content, s.heldText = s.content[:0], s.escaped
	}
	return s.part(s.program, s.heldText, s.content, true)
}

// passed hands out a segment of the body; of those that end it the last is held back, since only
// the end tells that it is.
func (s *Split) passed(text bool, segment []byte) error {
	if text && !s.escaped {
		s.escaped = true
		s.c.counts.texts.Add(1)
	}
	if s.does != closing {
		return s.part(s.program, text, segment, false)
	}
	if s.holding {
		if err := s.part(s.program, s.heldText, s.content, false); err != nil {
			return err
		}
	}
	s.holding, s.heldText, s.content = true, text, append(s.content[:0], segment...)
	return nil
}

// part hands out a segment of the body.
func (s *Split) part(p *program.Program, text bool, segment []byte, last bool) error {
	first := !s.begun
	s.begun = true
	return s.emit(false, wire.Part{There: true, First: first, Last: last, Text: text, Program: p, Content: segment})
}

// flush hands out the segments of an attempt; whole: they are all of the part.
func (s *Split) handOut(head bool, p *program.Program, whole bool) error {
	from := 0
	for i, end := range s.ends {
		part := wire.Part{There: true, First: i == 0, Last: whole && i == len(s.ends)-1, Program: p,
			Content: s.content[from:end]}
		s.begun = s.begun || !head
		if err := s.emit(head, part); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// texts hands out text.
func (s *Split) texts(head bool, text []byte, last bool) error {
	first := head || !s.begun
	for {
		n := min(len(text), s.most)
		s.begun = s.begun || !head
		part := wire.Part{There: true, First: first, Last: last && n == len(text), Content: text[:n]}
		if err := s.emit(head, part); err != nil {
			return err
		}
		if text, first = text[n:], false; len(text) == 0 {
			return nil
		}
	}
}

// drain hands out text that waits, if it is that much.
func (s *Split) drain(least int) error {
	n := len(s.window)
	if n < least {
		return nil
	}
	if least > 1 {
		n -= n % least
	}
	err := s.texts(false, s.window[:n], false)
	s.window = s.window[:copy(s.window, s.window[n:])]
	return err
}

// collected gathers a segment of an attempt.
func (s *Split) collected(_ bool, segment []byte) error {
	s.content = append(s.content, segment...)
	s.ends = append(s.ends, len(s.content))
	return nil
}

// fits tries a program on a whole part, or on the beginning of one; on success the segments so far
// are gathered.
func (s *Split) fits(p *program.Program, part []byte, whole bool) bool {
	s.content, s.ends = s.content[:0], s.ends[:0]
	s.splitter.Reset(p, s.most, true, s.collect)
	if whole {
		return s.splitter.Split(part) == nil
	}
	return s.splitter.Write(part) == nil
}

// choose gives a program that fits the body, or the beginning of it, with its segments gathered;
// nil: it travels as text.
func (s *Split) choose(body []byte, whole bool) *program.Program {
	p := s.find(body, whole, false)
	if free := !s.learning.may(); p == nil && !s.c.opt.Text && (!free || s.again(body)) {
		p = s.learnBody(body, whole, free)
		if p != nil && (len(body) < shapeWorth || whole && s.textual(body)) {
			s.c.book.miss(p, len(body))
			return nil
		}
	}
	if p != nil && s.mark != 0 {
		s.c.book.mark(s.mark, p)
	}
	return p
}

// again reports whether the markup of a body that no shape fits came before, and counts it: what
// comes again is worth learning.
func (s *Split) again(body []byte) bool {
	if s.mark == 0 {
		s.mark = markOf(body)
	}
	return s.c.book.again(s.mark)
}

// textual reports whether a body of a new kind that was split into several segments is so much
// content that it takes less as text, which is compressed by all that it said before; more than
// half is hardly text.
func (s *Split) textual(body []byte) bool {
	n := len(s.content)
	return len(s.ends) > 1 && n > len(body)/textualContent && n < len(body)/2 && s.c.Stages()&wire.Zstd != 0
}

// find gives a program of a known shape that fits the part, with its segments gathered; nil if
// there is none, or none that the peer has or that is worth sending for this message.
func (s *Split) find(part []byte, whole, head bool) *program.Program {
	c := s.c
	if c.opt.Text {
		return nil
	}
	var p *program.Program
	for more := true; more; {
		before := c.unread.read()
		p = s.findKnown(part, whole, head)
		more = p == nil && c.unread.more(c.book, before)
	}
	// If the peer has another, this notes that the part went without one that is not worth sending.
	fresh := slices.IndexFunc(s.fresh, func(p *program.Program) bool { return head || c.worth(p, len(part)) })
	if p == nil && fresh >= 0 && s.fits(s.fresh[fresh], part, whole) {
		p = s.fresh[fresh]
		c.willAnnounce(p)
	}
	if p == nil {
		return nil
	}
	return s.fitted(p, head)
}

// findKnown gives a program in the book that fits the part and whose shape the peer has, with its
// segments gathered; nil if there is none. Programs that were tried before it and fit as well are
// in fresh.
func (s *Split) findKnown(part []byte, whole, head bool) *program.Program {
	s.candidates, s.fresh = s.c.book.candidates(s.candidates[:0], part, head), s.fresh[:0]
	if !head && len(s.candidates) > fewTries {
		s.mark = markOf(part)
		if p := s.c.book.marked(s.mark); p != nil {
			s.candidates = slices.Insert(s.candidates, 0, p)
		}
	}
	for _, p := range s.candidates {
		if !s.fits(p, part, whole) {
			continue
		}
		if s.c.has(p, head) {
			return p
		}
		s.fresh = append(s.fresh, p)
	}
	return nil
}

func (s *Split) fitted(p *program.Program, head bool) *program.Program {
	s.c.book.touch(p, head)
	s.learning.earn()
	return p
}

// insideValue reports whether the beginning of a message ends inside a long value: more of that
// would teach the learner nothing.
func insideValue(beginning []byte) bool {
	return bytes.LastIndexByte(beginning[len(beginning)/2:], '<') < 0
}
