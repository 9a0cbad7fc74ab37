package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// The bits of a data frame's first octet (section 5).
const (
	bitF = 0x40
	bitL = 0x20
	bitR = 0x10
	bitH = 0x08
	bitT = 0x04
	bitX = 0x02
	bitY = 0x01
)

// DataOverhead is the most octets a data frame has beside its payload.
const DataOverhead = 1 + 3 + 7*binary.MaxVarintLen64

// Data carries a fragment of a message (section 5). As parsed, Lane and Exchange are those the
// frame names, if NamesLane and NamesExchange say so; [Numbering.Resolve] fills in what it does not
// name. OneWay goes with First, Text without it; Place with First and OneWay.
type Data struct {
	First, Last, Reply, Head, OneWay, Text bool
	// Interim goes with First and Reply: another reply follows in the exchange (section 5.4).
	Interim                  bool
	NamesExchange, NamesLane bool
	Lane, Exchange           uint64
	Place                    Place
	Payload                  []byte
}

// Place is where a one-way message stands in the sequence of its direction (section 5.1); the zero
// value: in none.
type Place struct {
	// Number is that of the message, from 1 on; 0: it stands in no sequence, and the other fields
	// are empty.
	Number uint64
	// Answers is the number of the message of the other direction that this is the reply to; 0: it
	// is none.
	Answers uint64
	// Wanted: a reply is. Not with Answers.
	Wanted bool
	// Unknown: there is no reply, as the fate of the message it would answer is unknown. Only with
	// Answers, and not with Length.
	Unknown bool
	// Length is that of the whole body of a long message, in octets; 0: the message is none. What
	// follows is the body from the octet From on, up to Length.
	Length, From uint64
}

// maxPlace is the greatest number of a message in a sequence: two bits stand beside it.
const maxPlace = 1<<62 - 1

func (p Place) appendTo(b []byte) []byte {
	if p.Length != 0 {
		b = append(binary.AppendUvarint(b, p.Number<<2|uint64(bit(p.Wanted, 2))|1), 0)
		return binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(b, p.Length), p.From), p.Answers)
	}
	if p.Answers == 0 {
		return binary.AppendUvarint(b, p.Number<<2|uint64(bit(p.Wanted, 2)))
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, p.Number<<2|uint64(bit(p.Unknown, 2))|1), p.Answers)
}

// parsePlace reads a place, or the 0 that stands for an interim reply.
func parsePlace(c *bin.Cursor) (p Place, interim bool) {
	c.Name("place", bin.Uint)
	at, v := c.At(), c.Uvarint()
	if v == 0 {
		return p, true
	}
	p.Number = v >> 2
	flag := v&2 != 0
	named := func(field string) uint64 {
		c.Name(field, bin.Uint)
		return c.Uvarint()
	}
	if v&1 == 0 {
		p.Wanted = flag
	} else if p.Answers = named("answers"); p.Answers != 0 {
		p.Unknown = flag
	} else if p.Length = named("length"); p.Length != 0 {
		p.Wanted, p.From, p.Answers = flag, named("from"), named("answers")
		if c.Err() == nil && (p.From > p.Length || p.Wanted && p.Answers != 0) {
			c.Fail(fault(BadValue, at, "a long message of %d octets, from octet %d on", p.Length, p.From))
		}
	} else if c.Err() == nil {
		c.Fail(fault(BadValue, at, "a long message without octets"))
	}
	if c.Err() == nil && (p.Number == 0 || p.Answers > maxPlace) {
		c.Fail(fault(BadValue, at, "number 0, or beyond the limit"))
	}
	return p, false
}

// Key is the message this fragment belongs to; right once lane and exchange are resolved.
func (f Data) Key() Key { return Key{Lane: f.Lane, Exchange: f.Exchange, Reply: f.Reply} }

// Kind is [KindData].
func (Data) Kind() Kind { return KindData }

// AppendTo appends the frame.
func (f Data) AppendTo(b []byte) []byte {
	return append(f.appendBeginning(b, f.NamesLane, f.NamesExchange), f.Payload...)
}

// appendNamed appends the frame up to its payload as it is when lane and exchange are named: what
// of it is in the check of its message, beside the payload (section 5.2).
func (f *Data) appendNamed(b []byte) []byte { return f.appendBeginning(b, true, true) }

func (f *Data) appendBeginning(b []byte, namesLane, namesExchange bool) []byte {
	b = append(b, dataBit|bit(f.First, bitF)|bit(f.Last, bitL)|bit(f.Reply || f.Place.Number != 0, bitR)|bit(f.Head,
		bitH)|
		bit(f.OneWay || f.Text || f.Interim, bitT)|bit(namesExchange, bitX)|bit(namesLane, bitY))
	if namesLane {
		b = binary.AppendUvarint(b, f.Lane)
	}
	if namesExchange {
		b = binary.AppendUvarint(b, f.Exchange)
	}
	if f.Place.Number != 0 || f.Interim {
		b = f.Place.appendTo(b)
	}
	return binary.AppendUvarint(b, uint64(len(f.Payload)))
}

// ParseData is [Parse] for a b that begins with a data frame; it allocates nothing.
func ParseData(b []byte, at int64, maxPayload int) (Data, int, error) {
	if maxPayload == 0 {
		maxPayload = MaxPayload
	}
	c := bin.NewCursor(b, at)
	return parseData(&c, maxPayload)
}

func parseData(c *bin.Cursor, maxPayload int) (Data, int, error) {
	at := c.At()
	o := c.U8()
	first := o&bitF != 0
	f := Data{
		First: first, Last: o&bitL != 0, Reply: o&bitR != 0, Head: o&bitH != 0, OneWay: first && o&bitT != 0,
		Text:          !first && o&bitT != 0,
		NamesExchange: o&bitX != 0, NamesLane: o&bitY != 0,
	}
	placed := f.OneWay && f.Reply // no reply is one-way: the two bits together say that
	f.Reply = f.Reply && !placed
	switch {
	case !f.First && f.NamesLane && !f.NamesExchange:
		return Data{}, 0, fault(BadValue, at, "later fragment names its lane but not its exchange")
	}
	if f.NamesLane {
		c.Name("lane", bin.Uint)
		f.Lane = c.Uvarint()
	}
	if f.NamesExchange {
		f.Exchange = exchange(c)
	}
	if placed {
		if f.Place, f.Interim = parsePlace(c); f.Interim {
			f.Reply, f.OneWay = true, false
		}
	}
	c.Name("length of the payload", bin.Uint)
	size := c.Count(uint64(maxPayload))
	if c.Err() != nil {
		return Data{}, 0, unlessShort(c.Err())
	}
	if c.Len() < size {
		return Data{}, 0, nil
	}
	c.Name("payload", bin.Raw)
	f.Payload = c.Take(size)
	return f, int(c.At() - at), nil
}
