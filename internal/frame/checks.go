package frame

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"slices"

	"github.com/hhfr/hhfr/internal/few"
)

// Origin is what all messages of a direction have in common; every message check begins with it
// (section 5.2).
type Origin struct {
	// Responder: the direction is that of the end that did not open the connection.
	Responder      bool
	Session        [16]byte
	Representation uint64
	Stages         uint64
}

// OriginOf is that of the direction which a hello opens. Representation and stages of a direction
// are those of both hellos.
func OriginOf(f Hello) Origin { return Origin{f.Responder, f.Session, f.Representation, f.Stages} }

// Origin is that of the direction in which the sync stands.
func (f Sync) Origin() Origin { return Origin{f.Responder, f.Session, f.Representation, f.Stages} }

// sum is the CRC that every message check of the direction begins with.
func (o Origin) sum() uint32 {
	b := append(make([]byte, 0, 64), bit(o.Responder, 1))
	b = append(b, o.Session[:]...)
	b = binary.AppendUvarint(b, o.Representation)
	b = binary.AppendUvarint(b, o.Stages)
	return crc32.Checksum(b, castagnoli)
}

// Checks knows the messages of a direction that are open, takes their fragments apart, and counts
// the whole ones and their checks since the last sync (sections 5.2 and 6). Sender, receiver and
// decoder of a capture each keep one per direction. [NewChecks] makes one.
type Checks struct {
	origin   uint32
	open     few.Map[Key, open]
	messages uint64
	sum      hash.Hash // over the checks since the last sync; nil: none
	blind    bool      // a check in sum cannot be told
	scratch  []byte    // a local one would be allocated for each message
}

// open is a message begun and not whole. blind: its check cannot be told.
type open struct {
	state MessageState
	crc   uint32
	blind bool
}

// NewChecks is the state of a direction behind its hello.
func NewChecks(o Origin) Checks { return Checks{origin: o.sum()} }

// Cut takes the payload of a data frame apart whose numbers are resolved (section 5, "Payload";
// section 10.6). at is the offset of the frame, payloadAt that of its payload. A sender cuts what
// it is about to pack. [Checks.Add] must follow, with the payload as it travels. Errors, with the
// code [BadState] among others, change nothing.
func (c *Checks) Cut(f *Data, at, payloadAt int64) (p Parts, err error) {
	k := f.Key()
	m, begun := c.open.Find(k)
	switch {
	case f.First && begun:
		return p, fault(BadState, at, "second first fragment of %s", k)
	case !f.First && !begun:
		return p, fault(BadState, at, "later fragment of %s, which is not open", k)
	}
	if err = m.state.cut(f, &p, payloadAt); err != nil || f.First && f.Last {
		return p, err
	}
	if f.First {
		m.crc = c.origin
	}
	c.open.Put(k, m)
	return p, nil
}

// Put takes a data frame that its sender composed of parts: as Cut and then Add.
func (c *Checks) Put(f *Data, p *Parts, name func(number uint64) (name [8]byte, known bool)) {
	if !f.First || !f.Last {
		m := c.open.Get(f.Key())
		if f.First {
			m = open{crc: c.origin}
		}
		m.state.follow(p)
		c.open.Put(f.Key(), m)
	}
	c.Add(f, p, name)
}

// Add takes a data frame into the check of its message. p is what [Checks.Cut] gave for it; name is
// how syncs name the shape behind a number. If one is not known the check cannot be told: see
// [Checks.Agree].
func (c *Checks) Add(f *Data, p *Parts, name func(number uint64) (name [8]byte, known bool)) {
	k := f.Key()
	m := open{crc: c.origin}
	if !f.First {
		m = c.open.Get(k)
	}
	b := f.appendNamed(c.scratch[:0])
	for _, part := range [...]*RawPart{&p.Head, &p.Body} {
		if !part.First || part.Shape == 0 || part.Plain {
			continue
		}
		n, known := name(part.Shape)
		m.blind = m.blind || !known
		b = append(b, n[:]...)
	}
	c.scratch = b
	m.crc = crc32.Update(crc32.Update(m.crc, castagnoli, b), castagnoli, f.Payload)
	switch {
	case f.Last:
		c.open.Delete(k)
		c.blind = c.blind || m.blind
		c.messages++
		c.chain(m.crc)
	default:
		m.state = c.open.Get(k).state
		c.open.Put(k, m)
	}
}

// chain takes the check of a message, or of a cancel frame, into that of the next sync. A CRC would
// not do here: what changes several messages alike, as one octet does that tells the number of the
// next ones too, would change it not at all where their lengths and places suit.
func (c *Checks) chain(crc uint32) {
	if c.sum == nil {
		c.sum = sha256.New()
	}
	c.scratch = binary.LittleEndian.AppendUint32(c.scratch[:0], crc)
	c.sum.Write(c.scratch)
}

// Cancel takes a cancel frame into the check of the next sync. If that gives up a message of this
// direction, the message is open no more; false if it was not.
func (c *Checks) Cancel(f Cancel) bool {
	c.scratch = f.AppendTo(c.scratch[:0])
	c.chain(crc32.Update(c.origin, castagnoli, c.scratch))
	_, ok := c.open.Find(f.Message)
	if f.Refused || !ok {
		return false
	}
	c.open.Delete(f.Message)
	return true
}

// Len is the number of messages that are open.
func (c *Checks) Len() int { return c.open.Len() }

// Messages and Check are those that a sync or close states: since the sync before.
func (c *Checks) Messages() uint64 { return c.messages }

// Check is that of the checks of the whole messages and of the cancels since the sync before, 0 if
// there are none.
func (c *Checks) Check() uint32 {
	if c.sum == nil {
		return 0
	}
	c.scratch = c.sum.Sum(c.scratch[:0])
	return binary.LittleEndian.Uint32(c.scratch)
}

// Open lists the open messages as a sync does: ascending, the first [MaxOpen] of them.
func (c *Checks) Open() []Open {
	all := make([]Open, 0, c.open.Len())
	for k, m := range c.open.All {
		all = append(all, Open{k, m.state &^ bodyPlain, m.crc})
	}
	slices.SortStableFunc(all, func(a, b Open) int { return a.Key.Compare(b.Key) })
	return all[:min(len(all), MaxOpen)]
}

// Agree compares what a sync states with what came. Not known: the name of a shape in it was not.
func (c *Checks) Agree(s Sync) (right, known bool) {
	if right, known = c.AgreeClose(Close{Messages: s.Messages, Check: s.Check}); !right {
		return right, known
	}
	return len(s.Open) == min(c.open.Len(), MaxOpen) && !slices.ContainsFunc(s.Open, func(o Open) bool {
		m, ok := c.open.Find(o.Key)
		return !ok || m.state&^bodyPlain != o.State || m.crc != o.CRC && !m.blind
	}), known
}

// AgreeClose compares what a close states with what came, as [Checks.Agree] does.
func (c *Checks) AgreeClose(f Close) (right, known bool) {
	return f.Messages == c.messages && (c.blind || f.Check == c.Check()), !c.blind
}

// Next begins a new count after a sync; what is open goes on.
func (c *Checks) Next(s Sync) {
	c.messages, c.sum, c.blind = 0, nil, false
	for _, o := range s.Open {
		if m, ok := c.open.Find(o.Key); ok && m.blind {
			c.open.Put(o.Key, open{state: m.state, crc: o.CRC})
		}
	}
}

// Seed begins at a sync: nothing counted, open what it lists. A decoder that joins in the middle
// starts so; it drops the content of these.
func (c *Checks) Seed(s Sync) {
	*c = NewChecks(s.Origin())
	for _, o := range s.Open {
		c.open.Put(o.Key, open{state: o.State, crc: o.CRC})
	}
}
