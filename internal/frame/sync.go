package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

var syncMark = []byte{byte(KindSync), 0xC5, 'h', 'h', 'f', 'r', 0x9A, '\n'}

// Sync lets a decoder begin, and a receiver check (section 6). The own check is computed when it is
// appended and checked when it is parsed.
type Sync struct {
	Word           [8]byte
	Offset         uint64
	Responder      bool
	Session        [16]byte
	Representation uint64
	Stages         uint64
	Messages       uint64
	Check          uint32
	Shapes         []Announced
	Lanes          []LaneNumbers
	Open           []Open
}

// Announced is a shape number whose announcement stays good, with the first octets of the
// fingerprint that it stands for.
type Announced struct {
	Number uint64
	Name   [8]byte
}

// NameOf is how a sync names the shape with this fingerprint.
func NameOf(fingerprint [32]byte) [8]byte { return [8]byte(fingerprint[:]) }

// LaneNumbers are the exchanges of the last request and of the last reply that were begun on a
// lane; 0: none yet.
type LaneNumbers struct{ Lane, Request, Reply uint64 }

// MaxOpen is how many open messages a sync lists at most. Where it lists so many there may be more:
// no decoder can begin there.
const MaxOpen = 1024

// Open is a message begun and not whole, with its check so far.
type Open struct {
	Key   Key
	State MessageState
	CRC   uint32
}

// The least octets that an entry of each list takes; a count above what fits the rest of the body
// is refused before anything is allocated.
const (
	minAnnounced   = 1 + 8
	minLaneNumbers = 3
	minOpen        = 1 + 1 + 1 + 4
)

// Kind is [KindSync].
func (Sync) Kind() Kind { return KindSync }

// AppendTo appends the frame with its own check.
func (f Sync) AppendTo(b []byte) []byte {
	return appendChecked(b, syncMark, f.appendFields)
}

func (f Sync) appendFields(b []byte) []byte {
	b = append(b, f.Word[:]...)
	b = binary.AppendUvarint(b, f.Offset)
	b = append(b, bit(f.Responder, 1))
	b = append(b, f.Session[:]...)
	b = binary.AppendUvarint(b, f.Representation)
	b = binary.AppendUvarint(b, f.Stages)
	b = binary.AppendUvarint(b, f.Messages)
	b = binary.LittleEndian.AppendUint32(b, f.Check)
	b = binary.AppendUvarint(b, uint64(len(f.Shapes)))
	for _, s := range f.Shapes {
		b = append(binary.AppendUvarint(b, s.Number), s.Name[:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(f.Lanes)))
	for _, l := range f.Lanes {
		b = binary.AppendUvarint(b, l.Lane)
		b = binary.AppendUvarint(b, l.Request)
		b = binary.AppendUvarint(b, l.Reply)
	}
	b = binary.AppendUvarint(b, uint64(len(f.Open)))
	for _, o := range f.Open {
		b = append(binary.AppendUvarint(b, o.Key.Lane), bit(o.Key.Reply, 1)|byte(o.State&stateMask))
		b = binary.AppendUvarint(b, o.Key.Exchange)
		b = binary.LittleEndian.AppendUint32(b, o.CRC)
	}
	return b
}

func parseSync(c *bin.Cursor) Frame {
	var f Sync
	c.Name("sync word", bin.Raw)
	copy(f.Word[:], c.Take(len(f.Word)))
	c.Name("offset", bin.Uint)
	f.Offset = c.Uvarint()
	f.Responder = direction(c, 1) == 1
	c.Name("session", bin.Raw)
	copy(f.Session[:], c.Take(len(f.Session)))
	c.Name("representation", bin.Uint)
	f.Representation = c.Uvarint()
	c.Name("stages", bin.Uint)
	f.Stages = c.Uvarint()
	c.Name("messages", bin.Uint)
	f.Messages = c.Uvarint()
	c.Name("check", bin.Raw)
	f.Check = c.U32()
	c.Name("shapes", bin.Uint)
	f.Shapes = list(c, minAnnounced, func(c *bin.Cursor) Announced {
		c.Name("number", bin.Uint)
		a := Announced{Number: c.Uvarint()}
		c.Name("name", bin.Raw)
		copy(a.Name[:], c.Take(len(a.Name)))
		return a
	}, func(a, b Announced) bool { return a.Number < b.Number })
	c.Name("lanes", bin.Uint)
	f.Lanes = list(c, minLaneNumbers, func(c *bin.Cursor) LaneNumbers {
		c.Name("lane", bin.Uint)
		l := LaneNumbers{Lane: c.Uvarint()}
		c.Name("last request", bin.Uint)
		l.Request = c.Uvarint()
		c.Name("last reply", bin.Uint)
		l.Reply = c.Uvarint()
		return l
	}, func(a, b LaneNumbers) bool { return a.Lane < b.Lane })
	c.Name("open messages", bin.Uint)
	f.Open = list(c, minOpen, parseOpen, func(a, b Open) bool { return a.Key.Compare(b.Key) < 0 })
	at := c.At()
	if len(f.Shapes) > 0 && f.Shapes[0].Number == 0 {
		c.Fail(fault(BadValue, at, "shape number 0"))
	}
	c.Name("own check", bin.Raw)
	c.Take(checkLen)
	return f
}

func parseOpen(c *bin.Cursor) Open {
	c.Name("lane", bin.Uint)
	o := Open{Key: Key{Lane: c.Uvarint()}}
	r := direction(c, 1|byte(stateMask))
	o.Key.Reply, o.State = r&1 != 0, Begun|MessageState(r)&stateMask
	o.Key.Exchange = exchange(c)
	c.Name("check so far", bin.Raw)
	o.CRC = c.U32()
	return o
}

// list reads a count and its entries, which take at least size octets each and ascend.
func list[T any](c *bin.Cursor, size int, read func(*bin.Cursor) T, less func(a, b T) bool) []T {
	n := c.Count(uint64(c.Len() / size))
	if c.Err() != nil || n == 0 {
		return nil
	}
	all := make([]T, 0, n)
	for range n {
		at := c.At()
		v := read(c)
		if c.Err() == nil && len(all) > 0 && !less(all[len(all)-1], v) {
			c.Fail(fault(BadOrder, at, "entry %d", len(all)))
		}
		if c.Err() != nil {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// direction reads the octet R of sections 6 and 7, at most most.
func direction(c *bin.Cursor, most byte) byte {
	at := c.At()
	c.Name("R", bin.Byte)
	r := c.U8()
	if r > most {
		c.Fail(fault(BadValue, at, "R is %d", r))
	}
	return r
}
