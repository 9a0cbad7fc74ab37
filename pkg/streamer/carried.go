package streamer

import "sync/atomic"

// Carried counts what streams carry, any number of them ([Config].Carried). Sent is what goes out
// at this end, Received what comes in.
type Carried struct{ Sent, Received CarriedMessages }

// CarriedMessages is one direction of a [Carried]. Messages counts those that were written, or
// came, to their end. Bytes is how long they are with their heads: what was written, and what was
// read. Wire is what all frames take, whatever is in them.
type CarriedMessages struct{ Messages, Bytes, Wire atomic.Int64 }

// ImpliedHeads are the lengths, in bytes, of the heads that messages have which travel without one.
type ImpliedHeads struct{ Request, Reply uint16 }

func (h ImpliedHeads) of(reply bool) int64 {
	if reply {
		return int64(h.Reply)
	}
	return int64(h.Request)
}
