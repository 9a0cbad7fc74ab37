package inspector

import (
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/filter"
)

// Logged is a message that is stored. Head and Body are not to be changed; Body has at most the
// first MiB.
type Logged struct {
	filter.Candidate
	Lane, Exchange    uint64
	Stream, Direction int // as in [capture.Decoded]
	Index             uint64
	Last              time.Time
	// Why gives details of the state, for people; empty: there are none.
	Why string
	// FileName is the name under which it is saved, as decode does.
	FileName string
	// Path is the path of the service of a stream: requests without a head go there.
	Path string
	// Whole reports whether the body is complete.
	Whole bool
	// Payload is what the frames of a message of a stream have without their framing, in bytes, and
	// CarriedAs how its head and body were carried.
	Payload int64
	Carried [2]CarriedAs
	// Frames are those of a message of a stream, as far as they are wanted.
	Frames []capture.RawFrame
}

// CarriedAs is how a head or body was carried on a stream, as [capture.CarriedPart].
type CarriedAs struct {
	Shape           string // see [Log.Shape]; empty: it went as text, or not at all
	Segments        int
	Packed, Content int64
}

// coding is an entry that is written, or read if in is there.
type coding struct {
	out []byte
	in  *bin.Cursor
}

// fields passes all fields to a coding, in the order of their bytes. The state is not among them:
// it changes.
func (e *Logged) fields(c *coding) {
	number(c, &e.Number)
	number(c, &e.Packet)
	number(c, &e.Status)
	for _, text := range []*string{
		&e.Operation, &e.Session, &e.Kind, &e.Call, &e.Fault, &e.Why, &e.FileName, &e.Path,
	} {
		c.text(text)
	}
	for _, address := range []*netip.AddrPort{&e.Client, &e.Server, &e.Source, &e.Target} {
		c.address(address)
	}
	number(c, &e.BodyOctets)
	number(c, &e.WireOctets)
	number(c, &e.Duration)
	c.moment(&e.Time)
	c.moment(&e.Last)
	number(c, &e.Lane)
	number(c, &e.Exchange)
	number(c, &e.Stream)
	number(c, &e.Direction)
	number(c, &e.Index)
	number(c, &e.Payload)
	for i := range e.Carried {
		p := &e.Carried[i]
		c.text(&p.Shape)
		number(c, &p.Segments)
		number(c, &p.Packed)
		number(c, &p.Content)
	}
	c.frames(&e.Frames)
	c.truth(&e.HHFR)
	c.truth(&e.Whole)
	c.octets(&e.Head)
	c.octets(&e.Body)
}

func (c *coding) frames(v *[]capture.RawFrame) {
	count := len(*v)
	if number(c, &count); c.in != nil {
		*v = nil
		for ; count > 0 && c.in.Len() > 0; count-- {
			*v = append(*v, capture.RawFrame{})
		}
	}
	for i := range *v {
		f := &(*v)[i]
		number(c, &f.Stream)
		number(c, &f.Direction)
		number(c, &f.At)
		number(c, &f.Packet)
		c.octets(&f.Octets)
	}
}

func number[T ~int | ~int64 | ~uint64](c *coding, v *T) {
	if c.in != nil {
		*v = T(c.in.Uvarint())
		return
	}
	c.out = bin.AppendUvarint(c.out, uint64(*v))
}

func (c *coding) truth(v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(c, &n)
	*v = n == 1
}

// longest is more than any field has, in bytes.
const longest = 1 << 31

func (c *coding) octets(v *[]byte) {
	if c.in != nil {
		*v = c.in.Bytes(longest)
		return
	}
	c.out = bin.AppendBytes(c.out, *v)
}

func (c *coding) text(v *string) {
	b := []byte(*v)
	if c.octets(&b); c.in != nil {
		*v = string(b)
	}
}

func (c *coding) address(v *netip.AddrPort) {
	var b []byte
	if c.in == nil {
		b, _ = v.MarshalBinary() // never fails
	}
	if c.octets(&b); c.in != nil {
		if err := v.UnmarshalBinary(b); err != nil {
			c.in.Fail(err)
		}
	}
}

func (c *coding) moment(v *time.Time) {
	n := int64(0)
	if c.in == nil && !v.IsZero() {
		n = v.UnixNano()
	}
	if number(c, &n); c.in != nil {
		if *v = (time.Time{}); n != 0 {
			*v = time.Unix(0, n).UTC()
		}
	}
}
