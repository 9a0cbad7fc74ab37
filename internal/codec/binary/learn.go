package binary

import (
	"math"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wire"
)

// mayLearn reports whether shapes are learned of messages on a lane.
func (c *Coder) mayLearn(a *allowance) bool { return !c.opt.Text && a.may() }

// has reports whether the peer has a shape.
func (c *Coder) has(p *program.Program, head bool) bool {
	last := &c.last[kindOf(head)]
	if last.Load() == p {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, has := c.peerKnows.Find(p.Shape().Fingerprint())
	if has {
		last.Store(p)
	}
	return has || c.opt.Refer
}

// learnBody makes a shape of the body, or widens one of its kind, and splits by it; nil if that
// cannot be, or the learner has done too much for nothing, where it is not free: then the body
// travels as text.
func (s *Split) learnBody(body []byte, whole, free bool) *program.Program {
	c := s.c
	if whole {
		if p := s.described(body); p != nil {
			return p
		}
	}
	if !free && !s.learning.spend(len(body)) {
		return nil
	}
	d := c.describe(body, whole)
	made, old, err := c.book.families.learn(body, whole, d)
	if err != nil {
		return nil
	}
	if whole && c.Stages()&wire.Plain != 0 && len(body) <= s.most {
		if p := s.learnPlain(body, made, d, old != nil); p != nil {
			return p
		}
	}
	p := s.keep(made, d, body, whole)
	if p == nil && d != nil { // what is declared leaves no place for what is there
		if made, err = learn.FromMessage(body); err != nil {
			return nil
		}
		return s.keep(made, d, body, whole)
	}
	if old == nil {
		c.counts.learned.Add(1)
	} else {
		c.counts.widened.Add(1)
	}
	if old != nil && (p == nil || !c.has(p, false) && !c.worth(p, len(body))) {
		if made, err = learnAlone(body, d); err == nil {
			return s.keep(made, d, body, whole)
		}
	}
	if p != nil && old != nil && old.Fingerprint() != made.Fingerprint() {
		c.book.retire(old.Fingerprint())
	}
	return p
}

// learnPlain has a body split by its plain shape, which its text may announce, where that is worth
// it; nil: it is not. made is what was learned, wider: from others of its kind as well.
func (s *Split) learnPlain(body []byte, made *shape.Shape, d *Described, wider bool) *program.Program {
	plain, err := learn.Plain(body)
	if err != nil || len(plain.Octets()) > plainRows*len(made.Octets()) {
		return nil
	}
	if wider && plain.Fingerprint() != made.Fingerprint() {
		p, err := s.c.book.Keep(made)
		if err != nil {
			return nil
		}
		s.c.book.describe(made, d)
		if s.hasMarkup(p, plain, body) {
			s.c.book.retire(made.Fingerprint())
		} else if s.c.has(p, false) || s.c.worthInstead(p, len(body)) {
			return nil
		}
	}
	if d != nil && s.byDescription(body, made, plain, d) {
		return nil
	}
	s.c.counts.learned.Add(1)
	return s.keep(plain, d, body, true)
}

// hasMarkup reports whether much of the content of a short body under a wide shape is what is
// markup under its plain shape: elements of which there were too many to be choices. That of a long
// one takes more than it saves.
func (s *Split) hasMarkup(wide *program.Program, plain *shape.Shape, body []byte) bool {
	if len(body) > mostMarkup || !s.fits(wide, body, true) {
		return false
	}
	content := len(s.content)
	return s.fits(program.Compile(plain), body, true) && content > leastMarkup+2*len(s.content)
}

// byDescription reports whether a body is to announce the shape that was learned, which it was
// declared by, as the peer has that description: all takes less than text, and the values no more
// than under the plain shape. Each is tried as the first of its lane.
func (s *Split) byDescription(body []byte, made, plain *shape.Shape, d *Described) bool {
	own := s.c.styledLike(d.Own, made)
	if own == nil {
		return false
	}
	values := s.sizeUnder(made, body)
	return len(transit.PackOwn(nil, made.Octets(), own))+values < s.c.Compression().Alone(body) &&
		values <= s.sizeUnder(plain, body)
}

// sizeUnder is about what the values of a body take under a shape; a great deal if it does not fit.
func (s *Split) sizeUnder(by *shape.Shape, body []byte) int {
	p := program.Compile(by)
	if !s.fits(p, body, true) {
		return math.MaxInt / 2
	}
	return s.c.Compression().Values(s.c.Stages(), p, s.content)
}

// described has the shape of a body described that is whole, and splits by it; nil if that cannot
// be.
func (s *Split) described(body []byte) *program.Program {
	if describe := s.c.opt.Describe; describe == nil || !describe(body) {
		return nil
	}
	return s.find(body, true, false)
}

func (s *Split) learnHead(head []byte) *program.Program {
	if !s.learning.spend(len(head)) {
		return nil
	}
	made, err := learn.FromHead(head)
	if err != nil {
		return nil
	}
	return s.keep(made, nil, head, true)
}

// keep stores a shape that was learned, by a description or none, and splits by it; nil if either
// fails.
func (s *Split) keep(made *shape.Shape, d *Described, part []byte, whole bool) *program.Program {
	p, err := s.c.book.Keep(made)
	if err != nil {
		s.c.book.Log.Warn("shape not stored, message travels as text", "shape", made.Fingerprint().URI(), "err", err)
		return nil
	}
	s.c.book.describe(made, d)
	if !s.fits(p, part, whole) {
		return nil
	}
	s.c.willAnnounce(p)
	return p
}

// enterLearners takes one of the few places of messages of which much is kept for learning.
func (s *Split) enterLearners() bool {
	if !s.slot && s.c.learners.Add(1) > maxLearners {
		s.c.learners.Add(-1)
		return false
	}
	s.slot = true
	return true
}

func (s *Split) leaveLearners() {
	if s.slot {
		s.slot = false
		s.c.learners.Add(-1)
	}
}

// remember keeps what travels as text for learning.
func (s *Split) remember(octets []byte) {
	if !s.learns {
		return
	}
	if len(s.cut)+len(octets) > learnWindow {
		s.learns, s.cut = false, nil
		s.leaveLearners()
		return
	}
	s.cut = append(s.cut, octets...)
}

// learnCut has a body of an unknown kind that had to travel as text described, or makes a shape of
// it: the next of its kind need not.
func (s *Split) learnCut() {
	c := s.c
	if p := s.described(s.cut); p != nil {
		c.book.miss(p, len(s.cut))
		return
	}
	if !s.learning.spend(len(s.cut)) {
		return
	}
	d := c.describe(s.cut, true)
	made, old, err := c.book.families.learn(s.cut, true, d)
	if err != nil {
		return
	}
	p, err := c.book.Keep(made)
	if err != nil {
		c.book.Log.Warn("shape not stored", "shape", made.Fingerprint().URI(), "err", err)
		return
	}
	if c.book.describe(made, d); d != nil && d.Broken {
		c.drifted()
	}
	c.book.miss(p, len(s.cut))
	if old == nil {
		c.counts.learned.Add(1)
		return
	}
	if c.counts.widened.Add(1); old.Fingerprint() != made.Fingerprint() {
		c.book.retire(old.Fingerprint())
	}
}
