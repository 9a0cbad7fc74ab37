package streamer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/wire"
)

// streamWriter is what those know who write, one at a time.
type streamWriter struct {
	s     *Stream
	start func() // run, without an allocation for each
	state atomic.Int32
	hurry chan struct{} // with Config.FlushDelay

	mu      sync.Mutex // of who encodes, and of the fields below
	enc     *wire.Encoder
	sent    int   // how much of what was encoded the connection has taken
	stuck   bool  // it takes no more without waiting
	content int64 // what the messages in the batch cost
	last    bool  // the direction ends with what was encoded
	noted   int32 // how many of the frames that were encoded are noted
	told    int32 // how many of those are in Stats
	whole   int32 // messages that ended with those that are not
	now     time.Time
	late    bool        // something was written since then
	begun   []begun     // messages that begin in the batch
	ended   []*outbound // messages that end in it
	jobs    few.Map[*wire.Transfer, *transfer]
	behind  few.Map[uint64, *transfer] // lanes whose next request waits for a shape
	restAt  time.Time                  // when the memory of a lane may be idle; zero: none is in use
	quiet   time.Duration              // how long it is silent before that

	idle    *time.Timer
	watched time.Time // when that fires, or has fired
}
