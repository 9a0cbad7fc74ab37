package capture

import (
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// StreamOctets are the numbers of bytes of a direction by their purpose. Data counts the frames of
// messages, payload and framing.
type StreamOctets struct{ Data, Shape, Sync, Other int64 }

func (o *StreamOctets) add(f *wire.DecodedFrame) {
	n := &o.Other
	switch f.Kind {
	case frame.KindData:
		n = &o.Data
	case frame.KindShape:
		n = &o.Shape
	case frame.KindSync:
		n = &o.Sync
	default:
	}
	*n += int64(f.Octets)
}
