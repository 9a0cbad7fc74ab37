package frame

import (
	"encoding/binary"
	"math"

	"github.com/hhfr/hhfr/internal/bin"
)

var helloMark = []byte{byte(KindHello), 'H', 'H', 'F', 'R', '/', '1', '\n'}

// TokenLen is the length of a join token, in octets; MaxTarget that of the longest target;
// DescriptionLen that of the name of a description.
const (
	TokenLen       = 16
	MaxTarget      = 2048
	DescriptionLen = 8
)

// The representations of section 3.
const (
	Binary uint64 = 1
	XML    uint64 = 2
)

// Headers is the one optional stage that is not the representation's: unchanging headers stand in
// bodies by their names (docs/negotiation.md, section 3.2).
const Headers uint64 = 8

// Limits are what an end states in its hello (section 3). Octets but for MaxShapes and
// MaxExchanges, which are counts.
type Limits struct {
	MaxFragment   uint64
	MaxMessage    uint64
	MaxShapes     uint64
	MaxShapeBytes uint64
	MaxExchanges  uint64
	Window        uint64
	MaxHeld       uint64
}

// MinWindow is the least window that an end states, in octets of content; less counts as that.
const MinWindow = 32 << 10

// EarlyLimits are those an initiator keeps to until it has the hello of the responder.
var EarlyLimits = Limits{MaxFragment: MinPayload, MaxShapes: 16, MaxShapeBytes: 65536, MaxExchanges: 1, Window: 65536,
	MaxMessage: math.MaxInt64, MaxHeld: 0}

// Hello opens a direction (section 3).
type Hello struct {
	Responder bool
	// Proxy: this end is half of a pair of proxies (docs/proxy.md).
	Proxy   bool
	Session [16]byte
	// Token has [TokenLen] octets, or none. An initiator's is what it joins the session by; a
	// responder's is the one to join it by next, once, within Lifetime seconds.
	Token []byte
	Word  [8]byte
	// Representation of a responder is 0 if it does not take the session; a close follows.
	Representation uint64
	Stages         uint64
	Limits         Limits
	Lifetime       uint64
	// Target is the URL of the service at a first contact, which has no token; else empty.
	Target string
	// Description is the beginning of the fingerprint of the service's description, of
	// [DescriptionLen] octets; nil: none is named. An initiator has that description; a responder
	// that names it has it, too.
	Description []byte
	// Abilities are bits of what this end can do beyond this version; unknown ones mean nothing.
	Abilities uint64
}

// Kind is [KindHello].
func (Hello) Kind() Kind { return KindHello }

// AppendTo appends the frame with its own check.
func (f Hello) AppendTo(b []byte) []byte {
	return appendChecked(b, helloMark, func(b []byte) []byte {
		b = append(b, formatVersion, bit(f.Responder, 1)|bit(f.Proxy, 2))
		b = append(b, f.Session[:]...)
		b = bin.AppendBytes(b, f.Token)
		b = append(b, f.Word[:]...)
		for _, v := range []uint64{f.Representation, f.Stages, f.Limits.MaxFragment, f.Limits.MaxMessage,
			f.Limits.MaxShapes,
			f.Limits.MaxShapeBytes, f.Limits.MaxExchanges, f.Limits.Window, f.Limits.MaxHeld, f.Lifetime} {
			b = binary.AppendUvarint(b, v)
		}
		b = bin.AppendBytes(b, []byte(f.Target))
		if len(f.Description) > 0 || f.Abilities > 0 {
			b = bin.AppendBytes(b, f.Description)
		}
		if f.Abilities > 0 {
			b = binary.AppendUvarint(b, f.Abilities)
		}
		return b
	})
}

func parseHello(c *bin.Cursor) Frame {
	var f Hello
	if at, scheme := c.At(), c.Uvarint(); c.Err() == nil && scheme != formatVersion {
		c.Fail(fault(Unsupported, at, "scheme %d", scheme))
	}
	at := c.At()
	role := c.U8()
	if role > 3 {
		c.Fail(fault(BadValue, at, "role %#02x", role))
	}
	f.Responder, f.Proxy = role&1 != 0, role&2 != 0
	copy(f.Session[:], c.Take(len(f.Session)))
	at = c.At()
	f.Token = c.Bytes(TokenLen)
	if n := len(f.Token); n != 0 && n != TokenLen {
		c.Fail(fault(BadValue, at, "token of %d octets", n))
	}
	copy(f.Word[:], c.Take(len(f.Word)))
	f.Representation, f.Stages = c.Uvarint(), c.Uvarint()
	at = c.At()
	l := &f.Limits
	l.MaxFragment = c.Uvarint()
	if c.Err() == nil && (l.MaxFragment < MinPayload || l.MaxFragment > MaxPayload) {
		c.Fail(fault(BadValue, at, "max fragment %d", l.MaxFragment))
	}
	for _, v := range []*uint64{&l.MaxMessage, &l.MaxShapes, &l.MaxShapeBytes, &l.MaxExchanges, &l.Window, &l.MaxHeld,
		&f.Lifetime} {
		*v = c.Uvarint()
	}
	at = c.At()
	f.Target = string(c.Bytes(MaxTarget))
	if c.Err() == nil && f.Target != "" && (f.Responder || len(f.Token) > 0) {
		c.Fail(fault(BadValue, at, "target beside a token, or of a responder"))
	}
	if c.Err() == nil && c.Len() > checkLen {
		at = c.At()
		f.Description = c.Bytes(DescriptionLen)
		switch n := len(f.Description); {
		case c.Err() != nil || n == DescriptionLen:
		case n == 0:
			f.Description = nil
		default:
			c.Fail(fault(BadValue, at, "description of %d octets", n))
		}
	}
	if c.Err() == nil && c.Len() > checkLen {
		f.Abilities = c.Uvarint()
	}
	c.Take(max(checkLen, c.Len())) // the own check, and before it what later versions have
	return f
}

func bit(set bool, value byte) byte {
	if set {
		return value
	}
	return 0
}
