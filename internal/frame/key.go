package frame

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/bin"
)

// Key tells the messages of one direction apart. Its fields have no gap between them: a map hashes
// it as one piece.
type Key struct {
	Lane     uint64
	Exchange uint64
	Reply    bool
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

// String names a message for people.
func (k Key) String() string {
	kind := "request"
	if k.Reply {
		kind = "reply"
	}
	return fmt.Sprintf("%s %d on lane %d", kind, k.Exchange, k.Lane)
}

// exchange reads the number of an exchange; 0 is none.
func exchange(c *bin.Cursor) uint64 {
	at := c.At()
	c.Name("exchange", bin.Uint)
	n := c.Uvarint()
	if c.Err() == nil && n == 0 {
		c.Fail(fault(BadValue, at, "exchange 0"))
	}
	return n
}
