package streamer

import (
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// Hello is what an end says first (docs/wire-format.md, section 3); here for those who judge one and know nothing else of frames.
type Hello = frame.Hello

// PeerLimits are what a hello states.
type PeerLimits = frame.Limits

// EarlyLimits are those that every responder takes before its hello is there (section 3).
var EarlyLimits = frame.EarlyLimits

// TokenLen is the length of a join token, in bytes; MaxTarget that of the longest target of a hello.
const (
	TokenLen  = frame.TokenLen
	MaxTarget = frame.MaxTarget
)

// Place is where a one-way message stands in a sequence (section 5.1). What it means is the business of who sends and who serves it.
type Place = frame.Place

// Headers is the stage of unchanging headers (section 3).
const Headers = frame.Headers

// AllStages are those of the representation binary (section 3).
const AllStages = wire.Columns | wire.Memory | wire.Zstd

// CloseCode is why a stream ends (section 8).
type CloseCode = frame.CloseCode

// The close codes of section 8.
const (
	CloseDone           = frame.CloseDone
	CloseProtocol       = frame.CloseProtocol
	CloseUnknownSession = frame.CloseUnknownSession
	CloseLimits         = frame.CloseLimits
	CloseUnsupported    = frame.CloseUnsupported
	CloseCheck          = frame.CloseCheck
	CloseGoingAway      = frame.CloseGoingAway
	CloseInternal       = frame.CloseInternal
)
