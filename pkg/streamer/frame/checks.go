package frame

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checks counts whole messages and their checks since the last sync, and knows the messages that are open, with the CRC over their payloads so
// far (section 6). Sender, receiver and decoder of a capture each keep one per direction. The zero value is that of a direction after its hello.
type Checks struct {
	open     map[Key]uint32
	messages uint64
	sum      uint32
	scratch  [4]byte // a local one would be allocated for each message
}

// Add takes the payload of a data frame whose numbers are resolved; at is the frame's offset. whole tells that this was its message's last.
// Errors, with the code [BadState]: a first fragment of a message that is open, a later one of a message that is not. They change nothing.
func (c *Checks) Add(f *Data, at int64) error {
	k := f.Key()
	crc, open := c.open[k]
	if f.First == open {
		if open {
			return fault(BadState, at, "second first fragment of %s", k)
		}
		return fault(BadState, at, "later fragment of %s, which is not open", k)
	}
	crc = crc32.Update(crc, castagnoli, f.Payload)
	if !f.Last {
		if c.open == nil {
			c.open = map[Key]uint32{}
		}
		c.open[k] = crc
		return nil
	}
	delete(c.open, k)
	binary.LittleEndian.PutUint32(c.scratch[:], crc)
	c.sum = crc32.Update(c.sum, castagnoli, c.scratch[:])
	c.messages++
	return nil
}

// IsOpen tells whether the message has begun and is neither whole nor cancelled.
func (c *Checks) IsOpen(k Key) bool { _, ok := c.open[k]; return ok }

// Len is the number of messages that are open.
func (c *Checks) Len() int { return len(c.open) }

// Cancel takes a message out that its sender gave up; false if it was not open.
func (c *Checks) Cancel(k Key) bool {
	_, ok := c.open[k]
	delete(c.open, k)
	return ok
}

// Messages and Check are those that a sync or close states: since the sync before.
func (c *Checks) Messages() uint64 { return c.messages }

// Check is the CRC over the message checks of the whole messages since the sync before.
func (c *Checks) Check() uint32 { return c.sum }

// Open lists the open messages as a sync does, ascending.
func (c *Checks) Open() []Open {
	all := make([]Open, 0, len(c.open))
	for k, crc := range c.open {
		all = append(all, Open{k, crc})
	}
	slices.SortFunc(all, func(a, b Open) int { return a.Key.Compare(b.Key) })
	return all
}

// Next begins a new count after a sync; open messages stay open.
func (c *Checks) Next() { c.messages, c.sum = 0, 0 }

// Seed begins at a sync: nothing counted, open what it lists. A decoder that joins in the middle starts so; it drops the content of these.
func (c *Checks) Seed(s Sync) {
	*c = Checks{open: make(map[Key]uint32, len(s.Open))}
	for _, o := range s.Open {
		c.open[o.Key] = o.CRC
	}
}
