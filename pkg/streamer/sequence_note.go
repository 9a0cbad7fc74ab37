package streamer

import (
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// sequenceNote is what is said of a sequence: an acknowledgement, or what is kept of its long
// messages.
type sequenceNote struct {
	octets []byte
	kept   *frame.Kept
}

func (n sequenceNote) cost() int64 {
	if n.kept != nil {
		return int64(len(n.kept.Messages))
	}
	return int64(len(n.octets))
}

func (n sequenceNote) write(to *wire.Encoder) {
	if n.kept != nil {
		to.Keep(*n.kept)
		return
	}
	to.Ack(n.octets)
}
