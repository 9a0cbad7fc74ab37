package streamer

import "github.com/hhfr/hhfr/pkg/streamer/frame"

// Hello is what an end says first (docs/wire-format.md, section 3); here for those who judge one and know nothing else of frames.
type Hello = frame.Hello

// Place is where a one-way message stands in a sequence (section 5.1). What it means is the business of who sends and who serves it.
type Place = frame.Place

// Headers is the stage of unchanging headers (section 3).
const Headers = frame.Headers

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
