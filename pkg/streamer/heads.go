package streamer

import (
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/shape/program"
)

// laneHeads is the head that came last on some lanes.
type laneHeads struct {
	clients atomic.Uint32 // that the lanes had before, as this end knows
	last    atomic.Pointer[joinedHead]
}

// joinedHead is a head that was joined, and of what: the next one of its client on its lane is
// mostly the same. It is known to that client alone: how long a message takes must not tell one of
// another.
type joinedHead struct {
	lane    uint64
	clients uint32
	program *program.Program
	content string
	head    []byte
}

func (h *joinedHead) isOf(lane uint64, clients uint32, of *program.Program, content []byte) bool {
	return h.lane == lane && h.clients == clients && h.program == of && h.content == string(content)
}

const (
	// lastHeads is of how many lanes the last head is kept.
	lastHeads = 4
	// maxLastHead is the longest head that is kept, in bytes.
	maxLastHead = 2 << 10
)
