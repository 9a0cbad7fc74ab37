package negotiate

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Context ties the elements of a context document to its fields (docs/negotiation.md, section 5).
type Context struct {
	Facts
	// TokenHash is the SHA-256 of the token by which the session may be joined next; only at the
	// responder.
	TokenHash []byte
	// Lifetime is how long the session lasts from when it was agreed on or last joined; only at the
	// responder.
	Lifetime time.Duration
	// Token, Stages and Limits are what an initiator needs to join the session: its token, and what
	// the responder's hello stated. A responder has the limits that it stated last. nil: none.
	Token  []byte
	Stages uint64
	Limits *streamer.PeerLimits
}

const contextName = "Session"

// Marshal writes the context document (docs/negotiation.md, section 5).
func (c *Context) Marshal() ([]byte, error) {
	w := documentWriter{ns: xmlns.HHFRContext, children: make([]soap.Element, 0, 24)}
	w.texts("Session", c.Session.String())
	w.texts("Scheme", c.Scheme)
	w.texts("Representation", c.Representation)
	w.texts("Transport", c.Transport)
	for _, f := range []struct{ local, value string }{
		{"Assurance", c.Assurance}, {"Security", c.Security}, {"RequestDescription", c.RequestDescription},
		{"ReplyDescription", c.ReplyDescription}, {"Origin", c.Origin},
	} {
		if f.value != "" {
			w.texts(f.local, f.value)
		}
	}
	w.sequence(c.Sequence, "")
	if c.Proxy {
		w.texts("Proxy", "true")
	}
	w.texts("Path", c.Path)
	w.texts("Address", c.Address)
	w.texts("Expires", c.Expires.UTC().Format(time.RFC3339))
	if c.TokenHash != nil {
		w.texts("TokenHash", hex.EncodeToString(c.TokenHash))
	}
	w.lifetime(c.Lifetime)
	if c.Token != nil {
		w.texts("Token", hex.EncodeToString(c.Token))
	}
	if c.Limits != nil {
		w.texts("Stages", strconv.FormatUint(c.Stages, 10))
		w.limits(c.Limits)
	}
	w.heads(DefaultRequestFields, DefaultReplyFields)
	w.headers(c.Headers)
	w.common(c.Common)
	w.shapes(c.PeerShapes)
	if w.err != nil {
		return nil, AsMalformed(fmt.Errorf("session context: %w", w.err))
	}
	el := w.element(contextName)
	return soap.BuildElement(&el)
}

// ParseContext reads a context document. Errors: Malformed.
func ParseContext(data []byte) (*Context, error) {
	el, err := soap.ParseElement(data, soap.Limits{MaxBytes: maxContext, MaxDepth: 16, MaxElements: 512})
	if err != nil {
		return nil, AsMalformed(fmt.Errorf("session context: %w", err))
	}
	r := documentReader{el: el, asked: map[string]bool{}}
	if el.Name != (soap.Name{Space: xmlns.HHFRContext, Local: contextName}) {
		r.fail("root is %s", el.Name)
	}
	c := &Context{Facts: Facts{
		Session:            r.session(),
		Scheme:             r.one("Scheme"),
		Representation:     r.one("Representation"),
		Transport:          r.one("Transport"),
		Assurance:          r.optional("Assurance"),
		Security:           r.optional("Security"),
		RequestDescription: r.optional("RequestDescription"),
		ReplyDescription:   r.optional("ReplyDescription"),
		Headers:            r.headers(),
		Common:             r.common(),
		Origin:             r.optional("Origin"),
		Path:               r.one("Path"),
		Address:            r.one("Address"),
		PeerShapes:         r.shapes(),
	}}
	c.Sequence, _ = r.sequence()
	expires, err := time.Parse(time.RFC3339, r.one("Expires"))
	if err != nil {
		r.fail("Expires: %w", err)
	}
	c.Expires = expires
	c.Proxy = r.optional("Proxy") == "true"
	if r.optional("TokenHash") != "" {
		c.TokenHash = r.hex("TokenHash", 32)
	}
	c.Lifetime = r.lifetime()
	if r.optional("Token") != "" {
		c.Token = r.hex("Token", streamer.TokenLen)
	}
	c.Limits = r.limits()
	if c.Limits != nil {
		c.Stages = r.number("Stages")
	}
	if r.err != nil {
		return nil, AsMalformed(fmt.Errorf("session context: %w", r.err))
	}
	return c, nil
}

// ParseFacts reads a session's context as it is in a store. Errors: Malformed.
func ParseFacts(context []byte) (Facts, error) {
	c, err := ParseContext(context)
	if err != nil {
		return Facts{}, err
	}
	return c.Facts, nil
}

// Admits reports whether a token is that of the session of this context: not used up, and not
// expired.
func (c *Context) Admits(id SessionID, token []byte, now time.Time) bool {
	hash := sha256.Sum256(token)
	return c.Session == id && subtle.ConstantTimeCompare(hash[:], c.TokenHash) == 1 && now.Before(c.Expires)
}
