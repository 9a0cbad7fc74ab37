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
const DataOverhead = 1 + 3 + 2*binary.MaxVarintLen64

// Data carries a fragment of a message (section 5). As parsed, Lane and Exchange are those the frame names, if NamesLane and NamesExchange
// say so; [Numbering.Resolve] fills in what it does not name. OneWay goes with First, Text without it.
type Data struct {
	First, Last, Reply, Head, OneWay, Text bool
	NamesExchange, NamesLane               bool
	Lane, Exchange                         uint64
	Payload                                []byte
}

// Key tells the messages of one direction apart.
type Key struct {
	Lane     uint64
	Reply    bool
	Exchange uint64
}

// Compare orders keys as section 6 lists them: by lane, requests before replies, exchange.
func (k Key) Compare(o Key) int {
	switch {
	case k.Lane != o.Lane:
		return order(k.Lane < o.Lane)
	case k.Reply != o.Reply:
		return order(!k.Reply)
	case k.Exchange != o.Exchange:
		return order(k.Exchange < o.Exchange)
	}
	return 0
}

func order(less bool) int {
	if less {
		return -1
	}
	return 1
}

// Key is the message this fragment belongs to; right once lane and exchange are resolved.
func (f Data) Key() Key { return Key{f.Lane, f.Reply, f.Exchange} }

// Kind is [KindData].
func (Data) Kind() Kind { return KindData }

// AppendTo appends the frame.
func (f Data) AppendTo(b []byte) []byte {
	b = append(b, dataBit|bit(f.First, bitF)|bit(f.Last, bitL)|bit(f.Reply, bitR)|bit(f.Head, bitH)|
		bit(f.OneWay || f.Text, bitT)|bit(f.NamesExchange, bitX)|bit(f.NamesLane, bitY))
	if f.NamesLane {
		b = binary.AppendUvarint(b, f.Lane)
	}
	if f.NamesExchange {
		b = binary.AppendUvarint(b, f.Exchange)
	}
	return bin.AppendBytes(b, f.Payload)
}

// ParseData is [Parse] for a b that begins with a data frame; it allocates nothing.
func ParseData(b []byte, at int64, maxPayload int) (Data, int, error) {
	if maxPayload == 0 {
		maxPayload = MaxPayload
	}
	c := bin.NewCursor(b, at)
	o := c.U8()
	first := o&bitF != 0
	f := Data{
		First: first, Last: o&bitL != 0, Reply: o&bitR != 0, Head: o&bitH != 0, OneWay: first && o&bitT != 0, Text: !first && o&bitT != 0,
		NamesExchange: o&bitX != 0, NamesLane: o&bitY != 0,
	}
	switch {
	case f.OneWay && f.Reply:
		return Data{}, 0, fault(BadValue, at, "one-way reply")
	case !f.First && f.NamesLane && !f.NamesExchange:
		return Data{}, 0, fault(BadValue, at, "later fragment names its lane but not its exchange")
	}
	if f.NamesLane {
		f.Lane = c.Uvarint()
	}
	if f.NamesExchange {
		named := c.At()
		if f.Exchange = c.Uvarint(); c.Err() == nil && f.Exchange == 0 {
			return Data{}, 0, fault(BadValue, named, "exchange 0")
		}
	}
	size := c.Count(uint64(maxPayload))
	if c.Err() != nil {
		return Data{}, 0, unlessShort(c.Err())
	}
	if c.Len() < size {
		return Data{}, 0, nil
	}
	f.Payload = c.Take(size)
	return f, int(c.At() - at), nil
}
