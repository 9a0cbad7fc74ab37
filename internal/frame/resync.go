package frame

import "github.com/hhfr/hhfr/internal/bin"

// Resync asks the peer for a sync of its direction at which a decoder can begin that has nothing
// (section 6). It has the skip bit: peers that do not know it pass it over.
type Resync struct{}

// Kind is [KindResync].
func (Resync) Kind() Kind { return KindResync }

// AppendTo appends the frame.
func (Resync) AppendTo(b []byte) []byte { return append(b, byte(KindResync)|skipBit, 0) }

func parseResync(*bin.Cursor) Frame { return Resync{} }
