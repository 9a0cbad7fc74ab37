package binary

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/style"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

// Describer knows what messages are described as; internal/typed has one. It must be safe
// for concurrent use, and must not keep messages.
type Describer interface {
	// Describe returns what it says of a message, or of the beginning of one; nil if it says
	// nothing.
	Describe(message []byte, whole bool) *Described
	// Broken reports whether a message is not as it is described.
	Broken(message []byte) bool
	// Own returns the own shape of a name; nil if it has none of it, or several.
	Own(name transit.OwnName) *shape.Shape
}

// Described is what a description says of one message.
type Described struct {
	// Declare widens what is learned from the message.
	Declare func(*learn.Family)
	// Own is the own shape of its kind, which the description finds by its name; nil: there is
	// none.
	Own *shape.Shape
	// Broken: the message is not as it is described.
	Broken bool
}

// describe asks the description of a stream, if it has one.
func (c *Coder) describe(message []byte, whole bool) *Described {
	if c.opt.Description == nil {
		return nil
	}
	return c.opt.Description.Describe(message, whole)
}

func (d *Described) declare(f *learn.Family) {
	if d != nil {
		d.Declare(f)
	}
}

// Share says whether the peer has the description, too: for shapes that are announced from now on.
func (c *Coder) Share(shared bool) { c.shared.Store(shared) }

// willAnnounce stores what a shape may stand on when it is announced: whoever announces it must not
// wait for the store.
func (c *Coder) willAnnounce(p *program.Program) {
	if !c.shared.Load() || c.opt.Refer {
		return
	}
	if own := c.book.ownOf(p.Shape().Fingerprint()); own != nil {
		c.keepOwn(own)
	}
}

// learnAlone makes the shape of one message, by its description if there is one.
func learnAlone(message []byte, d *Described) (*shape.Shape, error) {
	f, err := learn.NewFamily(message, true)
	if err != nil {
		return nil, err
	}
	d.declare(f)
	return f.Shape()
}

// Own returns the own shape of what describes a shape, in the style of that, if the peer has it,
// too; else nil.
func (c *Coder) Own(p *program.Program) *transit.Own {
	return c.styledLike(c.book.ownOf(p.Shape().Fingerprint()), p.Shape())
}

// styledLike is an own shape, or none, in the style of a shape, as the peer has it; nil if it does
// not.
func (c *Coder) styledLike(own, s *shape.Shape) *transit.Own {
	if own == nil || !c.shared.Load() {
		return nil
	}
	in := style.Of(own, s)
	styled, err := in.Apply(own)
	if err != nil {
		return nil
	}
	return &transit.Own{Name: transit.OwnNameOf(own.Fingerprint()), Style: in.Text(), Octets: styled.Octets()}
}

// Styled returns the serialization of an own shape in a style; nil if this end does not have it.
func (c *Coder) Styled(name transit.OwnName, text string) []byte {
	if c.opt.Description == nil {
		return nil
	}
	own := c.opt.Description.Own(name)
	if own == nil {
		return nil
	}
	c.keepOwn(own)
	return StyledOctets(own, text)
}

// StyledOctets returns the serialization of an own shape in a style; nil if the style does not fit.
func StyledOctets(own *shape.Shape, text string) []byte {
	in, err := style.Parse(text)
	if err != nil {
		return nil
	}
	styled, err := in.Apply(own)
	if err != nil {
		return nil
	}
	return styled.Octets()
}

// keepOwn stores an own shape, so that what stands on it can be decoded by the store alone.
func (c *Coder) keepOwn(own *shape.Shape) {
	ctx, cancel := storeContext()
	defer cancel()
	if _, err := c.book.store.Put(ctx, own.Octets()); err != nil {
		c.book.Log.Warn("shape not stored: what this stream carries cannot be decoded later by the store alone",
			"shape", own.Fingerprint().URI(), "err", err)
	}
}

// drifts counts a message that is not as it is described: one under a shape that was made of such a
// message, or one that has values of other types, which whoever has the whole message finds out.
func (s *Split) drifts(p *program.Program, message []byte) {
	c := s.c
	if c.opt.Description == nil {
		return
	}
	is, broken := c.book.described(p.Shape().Fingerprint())
	if broken || is && message != nil && s.splitter.Exceptions() > 0 && c.opt.Description.Broken(message) {
		c.drifted()
	}
}

func (c *Coder) drifted() {
	c.counts.drifted.Add(1)
	c.book.drifted.Add(1)
}
