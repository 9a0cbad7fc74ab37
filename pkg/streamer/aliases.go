package streamer

import (
	"crypto/rand"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/wire"
)

// Hello is what an end says first (docs/wire-format.md, section 3); here for those who judge one
// and know nothing else of frames.
type Hello = frame.Hello

// PeerLimits are what a hello states.
type PeerLimits = frame.Limits

// EarlyLimits are those that every responder takes before its hello is there (section 3).
var EarlyLimits = frame.EarlyLimits

// TokenLen is the length of a join token, in bytes.
const TokenLen = frame.TokenLen

// DescriptionLen is the length of the name of a description, in bytes.
const DescriptionLen = frame.DescriptionLen

// Place is where a one-way message stands in a sequence (section 5.1). What it means is the
// business of who sends and who serves it.
type Place = frame.Place

// KeptPart says how much of a long message is kept (section 5.1).
type KeptPart = frame.KeptPart

// MaxKept is the most that [Stream.Keep] tells of at a time.
const MaxKept = frame.MaxKept

// Headers is the stage of unchanging headers (section 3).
const Headers = frame.Headers

// BriefHello stands among the stages of a request for a stream whose sender reads the short form of
// hello (section 3.1).
const BriefHello = frame.BriefHello

// NewBriefSession makes the random name of a session that the short form of hello can say.
func NewBriefSession() [16]byte {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	return frame.SeedSession(seed)
}

// AllStages are those of the representation binary (section 3).
const AllStages = wire.Columns | wire.Memory | wire.Zstd | wire.Plain

// CloseCode is why a stream ends (section 8).
type CloseCode = frame.CloseCode

// Close codes of section 8.
const (
	CloseProtocol       = frame.CloseProtocol
	CloseUnknownSession = frame.CloseUnknownSession
	CloseLimits         = frame.CloseLimits
	CloseUnsupported    = frame.CloseUnsupported
	CloseGoingAway      = frame.CloseGoingAway
	CloseInternal       = frame.CloseInternal
)

// FrameKind is the first byte of a frame (section 2).
type FrameKind = frame.Kind

// Coder is the codec of one stream. Its methods are called concurrently.
type Coder = wire.Coder

// PathInfo is what a transport knows of the path to the peer.
type PathInfo = netconn.PathInfo
