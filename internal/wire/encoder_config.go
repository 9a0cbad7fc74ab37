package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/shape/program"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
)

// EncoderConfig says what an encoder is to do. It is copied.
type EncoderConfig struct {
	// Origin and Word are those of the direction's hello.
	Origin frame.Origin
	Word   [8]byte
	// Peer is required.
	Peer Peer
	// Refer has every shape announced by reference: whoever reads has the store.
	Refer bool
	// Limits are the peer's: MaxFragment, MaxShapes and MaxShapeBytes count here.
	Limits frame.Limits
	// Compression is shared with others; nil: with none.
	Compression *Compression
	// SyncBytes and SyncMessages bound what stands between two syncs; 0 means, and at most,
	// 1,048,576 and 16,384. From 65,536 and 1,024 on, a sync is sent as soon as it is cheap.
	SyncBytes    int64
	SyncMessages int
	// SyncInterval bounds the time between two syncs of a direction that has messages; of one that
	// has fewer than 8 in it, the time until it has 8, but no more than 16 times that. 0 means 15
	// minutes, below 0 time does not count.
	SyncInterval time.Duration
}

const (
	// defaultSyncInterval is how long a decoder that joins waits for a sync.
	defaultSyncInterval = 15 * time.Minute
	// From soonestSync, soonestSyncBytes or soonestSyncMessages on, a sync is sent if it adds no
	// more than a syncShare-th part to what was sent.
	soonestSync         = time.Minute
	soonestSyncBytes    = 65536
	soonestSyncMessages = 1024
	syncShare           = 20
	// A SyncInterval with less than fewMessages lasts until there are more, for at most
	// latestIntervals.
	fewMessages     = 8
	latestIntervals = 16
	// syncOctets is about what a sync has beside shapes, laneOctets what it has of a lane.
	syncOctets = 64
	laneOctets = 4
	// priceStep and priceShare bound how far the price of a sync is trusted: it falls when shapes
	// are used again. After so many octets, or such a part of those so far, it is taken anew.
	priceStep  = 16384
	priceShare = 4
	// maxSyncShapes and maxSyncLanes bound the lists of a sync, so that it fits a frame.
	maxSyncShapes = 1024
	maxSyncLanes  = 256
	// leastLong is from how many octets on packed content is compressed by the window of its lane.
	leastLong = 96
	// packRoom is how many octets beyond its own a segment may take when it is packed, where there
	// is room: enough for a memory to get to know what is new.
	packRoom = 64
)

// SegmentRoom is what the framing of head and body inside one payload may take, in octets: two
// shape numbers and a length. A segment that is to be sent has at most as much less than a payload.
const SegmentRoom = 32

func (c EncoderConfig) withDefaults() EncoderConfig {
	if c.Compression == nil {
		c.Compression = new(Compression)
	}
	if c.SyncBytes == 0 || c.SyncBytes > frame.MaxSyncOctets {
		c.SyncBytes = frame.MaxSyncOctets
	}
	if c.SyncMessages == 0 || c.SyncMessages > frame.MaxSyncMessages {
		c.SyncMessages = frame.MaxSyncMessages
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = defaultSyncInterval
	}
	return c
}

// Peer tells which shapes the peer has. It must be safe for concurrent use.
type Peer interface {
	// Has reports whether the peer has a shape; sure: this stream carried it, one way or the other.
	Has(fp shape.Fingerprint) (has, sure bool)
	// Learned notes that it has, for sure.
	Learned(p *program.Program)
}
