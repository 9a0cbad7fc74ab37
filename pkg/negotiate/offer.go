package negotiate

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// OfferName is the Body child that makes a SOAP message an offer.
var OfferName = soap.Name{Space: xmlns.HHFRNegotiation, Local: "Offer"}

// OfferAction is the SOAPAction of an offer. Responders look at the Body alone.
const OfferAction = xmlns.HHFRNegotiation + ":offer"

// Message writes the offer as a SOAP message of the version. Errors: Malformed, when it exceeds the
// limits.
func (o *Offer) Message(v soap.Version) ([]byte, error) {
	w := documentWriter{ns: xmlns.HHFRNegotiation}
	w.texts("Scheme", o.Schemes...)
	w.texts("Representation", o.Representations...)
	w.texts("Transport", o.Transports...)
	w.texts("Assurance", o.Assurances...)
	w.texts("Security", o.Securities...)
	w.sequence(o.Sequence, "")
	w.lifetime(o.Lifetime)
	w.description("RequestDescription", o.Request)
	w.description("ReplyDescription", o.Reply)
	w.headers(o.Headers)
	w.common(o.Common)
	w.references(o.References)
	w.heads(o.RequestHead, o.ReplyHead)
	w.shapes(o.Shapes)
	return w.message(v, OfferName.Local)
}

// ParseOffer reads a SOAP message of either version that is an offer. Elements that this version
// does not know are ignored; header blocks that must be understood are not. Errors: Malformed.
func ParseOffer(data []byte) (*Offer, soap.Version, error) {
	r, v, err := open(data, OfferName)
	if err != nil {
		return nil, v, err
	}
	o := &Offer{
		Schemes:         r.texts("Scheme", maxChoices),
		Representations: r.texts("Representation", maxChoices),
		Transports:      r.texts("Transport", maxChoices),
		Assurances:      r.texts("Assurance", maxChoices),
		Securities:      r.texts("Security", maxChoices),
		Request:         r.description("RequestDescription"),
		Reply:           r.description("ReplyDescription"),
		Headers:         r.headers(),
		Common:          r.common(),
		References:      r.texts("HeaderReference", maxChoices),
		Lifetime:        r.lifetime(),
		Shapes:          r.shapes(),
	}
	o.Sequence, _ = r.sequence()
	o.RequestHead, o.ReplyHead = r.heads()
	o.Ignored = r.unknown()
	if r.err == nil && (len(o.Schemes) == 0 || len(o.Representations) == 0 || len(o.Transports) == 0) {
		r.fail("Scheme, Representation or Transport is missing")
	}
	if r.err == nil && (len(o.References)+len(o.Headers) > maxChoices || len(o.References) > 0 && o.Common == nil) {
		r.fail("%d header blocks and references, at most %d are allowed, and none without a ContextStore",
			len(o.Headers)+len(o.References), maxChoices)
	}
	if r.err != nil {
		return nil, v, AsMalformed(fmt.Errorf("offer: %w", r.err))
	}
	return o, v, nil
}
