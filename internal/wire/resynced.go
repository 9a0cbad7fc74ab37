package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/shape"
)

// resynced is when a direction had its last resync, and what was announced in full since.
type resynced struct {
	at     time.Time
	shapes map[shape.Fingerprint]struct{}
}

const (
	// minResync is the least time between two resyncs of a direction that the peer asks for.
	minResync = 5 * time.Second
	// maxResynced bounds the shapes that are known to have been announced since a resync. Beyond
	// it they are announced once more.
	maxResynced = 4096
)

// tell notes that a shape was announced in full.
func (r *resynced) tell(fp shape.Fingerprint) {
	if len(r.shapes) >= maxResynced {
		clear(r.shapes)
	}
	r.shapes[fp] = struct{}{}
}
