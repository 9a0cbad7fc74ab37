package frame

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/bin"
)

// FrameField is a field of a frame, by its name on docs/wire-format.md. From and To are its octets
// in the frame. Value is for people; empty: it is long, or says nothing but its octets.
type FrameField struct {
	Name, Value string
	From, To    int
}

// maxShownText is the longest text of a field that is its value, in octets.
const maxShownText = 256

// Dissect names the fields of the frame that b begins with, octet by octet, and returns how many
// octets it has. Of a data frame's payload it names the parts that stand there behind the fragments
// that state has seen, and has it see this one; nil leaves the payload whole. Errors are *[Error],
// also for a frame that is not whole.
func Dissect(b []byte, state *MessageState) (fields []FrameField, n int, err error) {
	f, n, err := Parse(b, 0, 0)
	switch {
	case err != nil:
		return nil, 0, err
	case n == 0:
		return nil, 0, fault(Truncated, 0, "%d octets of a frame that is not whole", len(b))
	}
	var named []bin.NamedField
	if d, ok := f.(Data); ok {
		c := bin.NewCursor(b[:n], 0)
		c.Watch(&named)
		_, _, _ = parseData(&c, MaxPayload) // which Parse has done
		if state != nil {
			var p Parts
			c = bin.NewCursor(d.Payload, int64(n-len(d.Payload)))
			named = named[:len(named)-1]
			c.Watch(&named)
			if err := state.take(&c, &d, &p); err != nil {
				return nil, 0, err
			}
		}
		return append([]FrameField{{Name: "bits", Value: bitsOf(d), To: 1}}, fieldsOf(b[:n], named)...), n, nil
	}
	entry := kinds[f.Kind()]
	body, _, _ := envelope(b, 0, entry.mark)
	begin, start := n-len(body), max(len(entry.mark), 1)
	first := FrameField{Name: "kind", Value: f.Kind().String(), To: start}
	if entry.mark != nil {
		first.Name = "mark"
	}
	fields = []FrameField{first, {Name: "length", Value: strconv.Itoa(len(body)), From: start, To: begin}}
	if entry.parse == nil {
		named = []bin.NamedField{{Name: "body", Form: bin.Raw, From: int64(begin)}}
	} else {
		c := bin.NewCursor(body, int64(begin))
		c.Watch(&named)
		entry.parse(&c)
	}
	return append(fields, fieldsOf(b[:n], named)...), n, nil
}

// fieldsOf gives the fields of a frame their ends and values.
func fieldsOf(b []byte, named []bin.NamedField) (fields []FrameField) {
	for i, f := range named {
		to := len(b)
		if i+1 < len(named) {
			to = int(named[i+1].From)
		}
		if int(f.From) < to {
			octets := b[f.From:to]
			fields = append(fields, FrameField{Name: f.Name, Value: valueOf(octets, f.Form), From: int(f.From), To: to})
		}
	}
	return fields
}

func valueOf(octets []byte, form bin.FieldForm) string {
	c := bin.NewCursor(octets, 0)
	switch form {
	case bin.Uint:
		return strconv.FormatUint(c.Uvarint(), 10)
	case bin.Byte:
		return strconv.Itoa(int(octets[0]))
	case bin.CountedText, bin.Counted:
		b := c.Bytes(uint64(len(octets)))
		if form == bin.Counted {
			return hex.EncodeToString(b)
		}
		return strconv.Quote(string(b[:min(len(b), maxShownText)]))
	default:
		return ""
	}
}

// bitsOf names the bits of a data frame's first octet (section 5).
func bitsOf(d Data) string {
	var names []string
	for _, bit := range []struct {
		set  bool
		name string
	}{
		{true, "data"}, {d.First, "first"}, {d.Last, "last"}, {d.Reply, "reply"}, {d.Interim, "interim"},
		{d.OneWay, "one-way"}, {d.Head, "head"}, {d.Text, "text"},
	} {
		if bit.set {
			names = append(names, bit.name)
		}
	}
	return strings.Join(names, ", ")
}
