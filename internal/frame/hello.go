package frame

import (
	"crypto/sha256"
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
// MaxExchanges, which are counts, and Far.
type Limits struct {
	MaxFragment   uint64
	MaxMessage    uint64
	MaxShapes     uint64
	MaxShapeBytes uint64
	MaxExchanges  uint64
	Window        uint64
	MaxHeld       uint64
	// Far: it reads windows of text that reach 256 KiB (section 11.8). An ability of who has the
	// stage zstd.
	Far bool
}

// MinWindow is the least window that an end states, in octets of content; less counts as that.
const MinWindow = 32 << 10

// EarlyLimits are those an initiator keeps to until it has the hello of the responder.
var EarlyLimits = Limits{MaxFragment: MaxPayload, MaxShapes: 16, MaxShapeBytes: 65536, MaxExchanges: 1, Window: 65536,
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
	// Abilities are bits of what this end can do beyond this version, but for Limits.Far; unknown
	// ones mean nothing.
	Abilities uint64
	// Brief: in the short form, of a connection that was upgraded ([Hello.Shorten]).
	Brief bool
}

// Kind is [KindHello].
func (Hello) Kind() Kind { return KindHello }

// AppendTo appends the frame with its own check.
func (f Hello) AppendTo(b []byte) []byte {
	return appendChecked(b, helloMark, func(b []byte) []byte {
		b = append(b, formatVersion, bit(f.Responder, roleResponder)|bit(f.Proxy, roleProxy)|bit(f.Brief, roleBrief))
		if f.Brief {
			return f.appendBrief(b)
		}
		b = append(b, f.Session[:]...)
		b = bin.AppendBytes(b, f.Token)
		b = append(b, f.Word[:]...)
		b = binary.AppendUvarint(binary.AppendUvarint(b, f.Representation), f.Stages)
		for _, v := range f.amounts() {
			b = binary.AppendUvarint(b, *v)
		}
		b = bin.AppendBytes(b, []byte(f.Target))
		abilities := f.abilities()
		if len(f.Description) > 0 || abilities > 0 {
			b = bin.AppendBytes(b, f.Description)
		}
		if abilities > 0 {
			b = binary.AppendUvarint(b, abilities)
		}
		return b
	})
}

func parseHello(c *bin.Cursor) Frame {
	var f Hello
	c.Name("scheme", bin.Uint)
	if at, scheme := c.At(), c.Uvarint(); c.Err() == nil && scheme != formatVersion {
		c.Fail(fault(Unsupported, at, "scheme %d", scheme))
	}
	at := c.At()
	c.Name("role", bin.Byte)
	role := c.U8()
	if role > roleResponder|roleProxy|roleBrief {
		c.Fail(fault(BadValue, at, "role %#02x", role))
	}
	f.Responder, f.Proxy, f.Brief = role&roleResponder != 0, role&roleProxy != 0, role&roleBrief != 0
	if f.Brief {
		f.parseBrief(c)
		return f
	}
	c.Name("session", bin.Raw)
	copy(f.Session[:], c.Take(len(f.Session)))
	at = c.At()
	c.Name("token", bin.Counted)
	f.Token = c.Bytes(TokenLen)
	if n := len(f.Token); n != 0 && n != TokenLen {
		c.Fail(fault(BadValue, at, "token of %d octets", n))
	}
	c.Name("sync word", bin.Raw)
	copy(f.Word[:], c.Take(len(f.Word)))
	c.Name("representation", bin.Uint)
	f.Representation = c.Uvarint()
	c.Name("stages", bin.Uint)
	f.Stages = c.Uvarint()
	at = c.At()
	for i, v := range f.amounts() {
		c.Name(amountNames[i], bin.Uint)
		*v = c.Uvarint()
	}
	f.checkFragment(c, at)
	at = c.At()
	c.Name("target", bin.CountedText)
	f.Target = string(c.Bytes(MaxTarget))
	if c.Err() == nil && f.Target != "" && (f.Responder || len(f.Token) > 0) {
		c.Fail(fault(BadValue, at, "target beside a token, or of a responder"))
	}
	if c.Err() == nil && c.Len() > checkLen {
		at = c.At()
		c.Name("description", bin.Counted)
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
		c.Name("abilities", bin.Uint)
		f.setAbilities(c.Uvarint())
	}
	takeOwnCheck(c)
	return f
}

const (
	stageZstd  = 4
	farWindows = 8 // ability: Limits.Far
)

// abilities are all that hello states.
func (f *Hello) abilities() uint64 {
	if f.Limits.Far && f.Stages&stageZstd != 0 {
		return f.Abilities | farWindows
	}
	return f.Abilities
}

func (f *Hello) setAbilities(stated uint64) {
	f.Abilities, f.Limits.Far = stated&^farWindows, stated&farWindows != 0
}

// The bits of the role.
const (
	roleResponder = 1 << iota
	roleProxy
	roleBrief
)

// takeOwnCheck takes the own check, and before it what later versions have.
func takeOwnCheck(c *bin.Cursor) {
	if more := c.Len() - checkLen; more > 0 {
		c.Name("of later versions", bin.Raw)
		c.Take(more)
	}
	c.Name("own check", bin.Raw)
	c.Take(checkLen)
}

// amounts are the limits and the lifetime, in the order of hello.
func (f *Hello) amounts() []*uint64 {
	l := &f.Limits
	return []*uint64{&l.MaxFragment, &l.MaxMessage, &l.MaxShapes, &l.MaxShapeBytes, &l.MaxExchanges, &l.Window,
		&l.MaxHeld, &f.Lifetime}
}

// amountNames are their names.
var amountNames = [...]string{"max fragment", "max message", "max shapes", "max shape octets", "max exchanges",
	"window", "max held", "lifetime"}

func (f *Hello) checkFragment(c *bin.Cursor, at int64) {
	if n := f.Limits.MaxFragment; c.Err() == nil && (n < MinPayload || n > MaxPayload) {
		c.Fail(fault(BadValue, at, "max fragment %d", n))
	}
}

func bit(set bool, value byte) byte {
	if set {
		return value
	}
	return 0
}

// BriefHello is, among the stages that a request for a stream names, that its sender reads the
// short form of hello (docs/negotiation.md, section 6.1). It is no stage of a stream.
const BriefHello uint64 = 16

// seedLen is how many octets of a session the short form has.
const seedLen = 8

// usual are the limits and the lifetime that the short form leaves out, in the order of hello.
var usual = [...]uint64{MaxPayload, 1 << 62, 1 << 10, 4 << 20, 1 << 12, 256 << 10, 1 << 20, 3600}

// SeedSession makes a session of the octets that the short form has of it. Its second half follows
// from the first; it is a UUID of version 8 (RFC 9562).
func SeedSession(seed [seedLen]byte) (session [16]byte) {
	seed[6] = seed[6]&0x0f | 0x80
	sum := sha256.Sum256(seed[:])
	copy(session[:], seed[:])
	copy(session[seedLen:], sum[:])
	session[seedLen] = session[seedLen]&0x3f | 0x80
	return session
}

// Shorten gives the hello its short form, and the sync word that follows from it, where the form
// can say all that the hello says.
func (f *Hello) Shorten() {
	if f.Session == SeedSession([seedLen]byte(f.Session[:])) && f.Representation == Binary && f.Target == "" &&
		len(f.Description) == 0 && (f.Responder || len(f.Token) == 0) {
		f.Brief, f.Word = true, f.briefWord()
	}
}

func (f *Hello) briefWord() [8]byte {
	sum := sha256.Sum256(append(f.Session[:len(f.Session):len(f.Session)], bit(f.Responder, roleResponder)))
	return [8]byte(sum[:])
}

// appendBrief appends what follows the role in the short form.
func (f *Hello) appendBrief(b []byte) []byte {
	b = append(b, f.Session[:seedLen]...)
	b = bin.AppendBytes(b, f.Token)
	b = binary.AppendUvarint(binary.AppendUvarint(b, f.Stages), f.abilities())
	at := len(b)
	b = append(b, 0)
	for i, v := range f.amounts() {
		if *v != f.usually(i) {
			b[at] |= 1 << i
			b = binary.AppendUvarint(b, *v)
		}
	}
	return b
}

// usually is an amount that the short form leaves out. An initiator states no lifetime.
func (f *Hello) usually(amount int) uint64 {
	if amount == len(usual)-1 && !f.Responder {
		return 0
	}
	return usual[amount]
}

func (f *Hello) parseBrief(c *bin.Cursor) {
	at := c.At()
	var seed [seedLen]byte
	c.Name("seed", bin.Raw)
	copy(seed[:], c.Take(seedLen))
	f.Session, f.Representation = SeedSession(seed), Binary
	if c.Err() == nil && [seedLen]byte(f.Session[:]) != seed {
		c.Fail(fault(BadValue, at, "session of another version"))
	}
	f.Word = f.briefWord()
	at = c.At()
	c.Name("token", bin.Counted)
	f.Token = c.Bytes(TokenLen)
	if n := len(f.Token); c.Err() == nil && n != 0 && (n != TokenLen || !f.Responder) {
		c.Fail(fault(BadValue, at, "token of %d octets", n))
	}
	c.Name("stages", bin.Uint)
	f.Stages = c.Uvarint()
	c.Name("abilities", bin.Uint)
	f.setAbilities(c.Uvarint())
	c.Name("other", bin.Byte)
	other := c.U8()
	at = c.At()
	for i, v := range f.amounts() {
		if *v = f.usually(i); other>>i&1 != 0 {
			c.Name(amountNames[i], bin.Uint)
			*v = c.Uvarint()
		}
	}
	f.checkFragment(c, at)
	takeOwnCheck(c)
}
