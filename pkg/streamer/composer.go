package streamer

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// fragment is a payload ready to be framed.
type fragment struct {
	payload                 []byte
	names                   [2]uint64 // the shape numbers it names, 0: none
	first, last, head, text bool
}

// composer cuts segments to payloads. It holds the last one back, since only the next segment, or the end, tells how it ends.
type composer struct {
	max         int // octets of a payload
	held        fragment
	have        bool
	begun, body bool
	lengthAt    int // where the length of the head segment stands in the payload held
}

// add takes the next segment, and returns the fragment before if it is complete with that.
func (c *composer) add(inHead bool, shape uint64, text bool, data []byte) (ready fragment, ok bool, err error) {
	switch {
	case len(data) > c.max-segmentRoom:
		return ready, false, fmt.Errorf("segment of %d octets, at most %d were asked for", len(data), c.max-segmentRoom)
	case inHead && (c.body || text), text && !c.body:
		return ready, false, errors.New("segment out of place")
	case inHead:
		if c.have {
			c.held.payload[c.lengthAt] |= 1
		}
		names := !c.begun
		ready, ok = c.next(names, shape, len(data))
		c.held.head = true
		c.lengthAt = len(c.held.payload)
		c.held.payload = binary.AppendUvarint(c.held.payload, 2*uint64(len(data)))
	case c.have && !c.body && len(c.held.payload)+len(data)+binary.MaxVarintLen64 <= c.max:
		c.held.payload = binary.AppendUvarint(c.held.payload, shape)
		c.held.names[1] = shape
		c.body = true
	default:
		ready, ok = c.next(!c.body, shape, len(data))
		c.held.text, c.body = text, true
	}
	c.held.payload = append(c.held.payload, data...)
	return ready, ok, nil
}

// next returns the fragment held, if there is one, and begins a new one, which names the shape if a part begins in it.
func (c *composer) next(names bool, shape uint64, size int) (ready fragment, ok bool) {
	ready, ok = c.held, c.have
	c.held = fragment{first: !c.begun, payload: make([]byte, 0, size+segmentRoom)}
	if names {
		c.held.payload = binary.AppendUvarint(c.held.payload, shape)
		c.held.names[0] = shape
	}
	c.begun, c.have = true, true
	return ready, ok
}

// end returns the last fragment.
func (c *composer) end() (fragment, error) {
	if !c.body {
		return fragment{}, errors.New("message without a body segment")
	}
	c.held.last = true
	return c.held, nil
}
