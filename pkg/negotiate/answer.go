package negotiate

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// AnswerName is the Body child that makes a SOAP message an answer.
var AnswerName = soap.Name{Space: xmlns.HHFRNegotiation, Local: "Answer"}

// Answer is what a responder selects of an offer (docs/negotiation.md, section 3).
type Answer struct {
	Scheme, Representation, Transport string // URIs, of those offered
	// Address is where the stream is opened: for tcp ":PORT" (the host is that of the negotiated URL) or "HOST:PORT", for inproc a name.
	Address string
	Session SessionID
	// Token admits whoever shows it to the session, once. The responder keeps its SHA-256 only.
	Token [16]byte
	// Lifetime is how long the session lasts from now on; whole seconds, more than 0.
	Lifetime time.Duration
	// RequestHead and ReplyHead are the fields of messages without a head; nil means those of this version.
	RequestHead, ReplyHead []soap.Field
	// Shapes are those of the offer's fingerprints whose shapes the responder has too.
	Shapes [][32]byte
}

// Message writes the answer as a SOAP message of the version. Errors: Malformed, when it is beyond the limits.
func (a *Answer) Message(v soap.Version) ([]byte, error) {
	w := writer{ns: xmlns.HHFRNegotiation}
	w.texts("Scheme", a.Scheme)
	w.texts("Representation", a.Representation)
	w.texts("Transport", a.Transport)
	w.texts("Address", a.Address)
	w.texts("Session", a.Session.String())
	w.texts("Token", hex.EncodeToString(a.Token[:]))
	w.lifetime(a.Lifetime)
	w.heads(a.RequestHead, a.ReplyHead)
	w.shapes(a.Shapes)
	return w.message(v, AnswerName.Local)
}

// ParseAnswer reads a SOAP message of either version that is an answer. Errors: Malformed; for a fault, and for anything else that is no
// answer, too.
func ParseAnswer(data []byte) (*Answer, error) {
	r, _, err := open(data, AnswerName)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		Scheme: r.one("Scheme"), Representation: r.one("Representation"), Transport: r.one("Transport"), Address: r.one("Address"),
		Session: r.session(), Lifetime: r.lifetime(), Shapes: r.shapes(),
	}
	copy(a.Token[:], r.hex("Token", len(a.Token)))
	a.RequestHead, a.ReplyHead = r.heads()
	if r.err == nil && a.Lifetime == 0 {
		r.fail("Lifetime is missing")
	}
	if r.err != nil {
		return nil, malformed(fmt.Errorf("answer: %w", r.err))
	}
	return a, nil
}

// fits says why an answer is none to the offer; nil if it is one.
func (a *Answer) fits(o *Offer) error {
	for _, c := range []struct {
		what, value string
		offered     []string
	}{{"scheme", a.Scheme, o.Schemes}, {"representation", a.Representation, o.Representations}, {"transport", a.Transport, o.Transports}} {
		if !slices.Contains(c.offered, c.value) {
			return fmt.Errorf("answer selects %s %q, which was not offered", c.what, c.value)
		}
	}
	if !isDefault(a.RequestHead, defaultRequestFields) || !isDefault(a.ReplyHead, defaultReplyFields) {
		return fmt.Errorf("answer selects other default heads than those of %s", Scheme)
	}
	return nil
}
