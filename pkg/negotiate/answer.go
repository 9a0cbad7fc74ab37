package negotiate

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// answerName is the Body child that makes a SOAP message an answer.
var answerName = soap.Name{Space: xmlns.HHFRNegotiation, Local: "Answer"}

// Message writes the answer as a SOAP message of the version. Errors: Malformed, when it exceeds
// the limits.
func (a *Answer) Message(v soap.Version) ([]byte, error) {
	w := documentWriter{ns: xmlns.HHFRNegotiation}
	w.texts("Scheme", a.Scheme)
	w.texts("Representation", a.Representation)
	w.texts("Transport", a.Transport)
	w.texts("Address", a.Address)
	w.texts("Session", a.Session.String())
	w.texts("Token", hex.EncodeToString(a.Token[:]))
	if a.Assurance != "" {
		w.texts("Assurance", a.Assurance)
	}
	if a.Security != "" {
		w.texts("Security", a.Security)
	}
	w.sequence(a.Sequence, stateName(a.SequenceKnown))
	w.lifetime(a.Lifetime)
	w.description("RequestDescription", a.Request)
	w.description("ReplyDescription", a.Reply)
	if a.HeadersKept > 0 {
		w.texts("UnchangingHeaders", strconv.Itoa(a.HeadersKept))
	}
	if a.ContextStore != "" {
		w.texts(commonName, a.ContextStore)
	}
	w.heads(a.RequestHead, a.ReplyHead)
	w.shapes(a.Shapes)
	w.refused(a.Refused)
	w.ignored(a.Ignored)
	return w.message(v, answerName.Local)
}

// ParseAnswer reads a SOAP message of either version that is an answer. Errors: Malformed, also for
// a fault and for anything else that is no answer.
func ParseAnswer(data []byte) (*Answer, error) {
	r, _, err := open(data, answerName)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		Scheme:         r.one("Scheme"),
		Representation: r.one("Representation"),
		Transport:      r.one("Transport"),
		Address:        r.one("Address"),
		Assurance:      r.optional("Assurance"),
		Security:       r.optional("Security"),
		Request:        r.description("RequestDescription"),
		Reply:          r.description("ReplyDescription"),
		HeadersKept:    r.count("UnchangingHeaders", maxChoices),
		ContextStore:   r.optional(commonName),
		Session:        r.session(),
		Lifetime:       r.lifetime(),
		Shapes:         r.shapes(),
		Refused:        r.refused(),
		Ignored:        r.ignored(),
	}
	copy(a.Token[:], r.hex("Token", len(a.Token)))
	var state string
	a.Sequence, state = r.sequence()
	a.SequenceKnown = state == sequenceKnown
	a.RequestHead, a.ReplyHead = r.heads()
	a.Unknown = r.unknown()
	if r.err == nil && a.Lifetime == 0 {
		r.fail("Lifetime is missing")
	}
	if r.err != nil {
		return nil, AsMalformed(fmt.Errorf("answer: %w", r.err))
	}
	return a, nil
}

// Fits returns an error if the answer does not fit the offer; nil if it does.
func (a *Answer) Fits(o *Offer) error {
	for _, c := range []struct {
		what, value string
		offered     []string
	}{
		{"scheme", a.Scheme, o.Schemes}, {"representation", a.Representation, o.Representations},
		{"transport", a.Transport, o.Transports},
		{"assurance", cmp.Or(a.Assurance, AtMostOnce), OrOnly(o.Assurances, AtMostOnce)},
		{"security", cmp.Or(a.Security, TransportSecurity), OrOnly(o.Securities, TransportSecurity)},
	} {
		if !slices.Contains(c.offered, c.value) {
			return fmt.Errorf("answer selects %s %q, which was not offered", c.what, c.value)
		}
	}
	if _, _, ok := ParseAssurance(a.Assurance); ok && a.Sequence != o.Sequence {
		return errors.New("answer names another sequence than the offer")
	}
	if all := len(o.Headers) + len(o.References); a.HeadersKept != 0 && a.HeadersKept != all {
		return fmt.Errorf("answer keeps %d header blocks of %d", a.HeadersKept, all)
	}
	if a.ContextStore != "" && (o.Common == nil || a.ContextStore != o.Common.URL) {
		return fmt.Errorf("answer selects context store %q, which was not offered", a.ContextStore)
	}
	if a.Transport == HTTPTransport && a.ContextStore == "" {
		return errors.New("answer selects plain SOAP without a context store")
	}
	if !isDefault(a.RequestHead, DefaultRequestFields) || !isDefault(a.ReplyHead, DefaultReplyFields) {
		return fmt.Errorf("answer selects other default heads than those of %s", Scheme)
	}
	return nil
}

// OrOnly returns list, or otherwise alone if list is empty.
func OrOnly(list []string, otherwise string) []string {
	if len(list) == 0 {
		return []string{otherwise}
	}
	return list
}
