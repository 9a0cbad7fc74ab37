package header

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxBroken bounds Blocks.Broken: who sends more of it has said enough.
const maxBroken = 8

// maxNumber is the greatest message number.
const maxNumber = 1<<63 - 1

// Parse reads what an envelope says about sequences; nil if it says nothing. Elements that the
// version does not have are passed over, as its schema allows. What breaks a rule is left out and
// listed in Blocks.Broken; everything beside it stands.
func Parse(e *soap.Envelope) *Blocks {
	fault, isFault := e.Fault()
	r := reader{m: &Blocks{Version: versionOf(e, &fault)}}
	if r.m.Version == "" {
		return nil
	}
	r.space = namespaces[r.m.Version]
	if isFault && fault.SubcodeSpace == r.space {
		r.m.Fault = fault.Subcode
	}
	r.each(e.Header, r.block)
	r.each(e.Body, r.control)
	return r.m
}

// reader reads one element after another.
type reader struct {
	m     *Blocks
	space string
	err   string // the first rule that the element at hand breaks
}

// each reads those elements of a list that are of the version. Of one that breaks a rule nothing
// stays.
func (r *reader) each(list []soap.Element, read func(*soap.Element)) {
	for i := range list {
		if list[i].Name.Space != r.space {
			continue
		}
		before := *r.m
		if read(&list[i]); r.err != "" {
			*r.m = before
			r.note(r.err)
			r.invalid(&list[i])
		}
		r.err = ""
	}
}

func (r *reader) note(broken string) {
	if len(r.m.Broken) < maxBroken {
		r.m.Broken = append(r.m.Broken, broken)
	}
}

// invalid keeps an acknowledgement that breaks a rule. One that says nothing is none.
func (r *reader) invalid(h *soap.Element) {
	says := r.child(h, "AcknowledgementRange") != nil || r.child(h, "Nack") != nil
	if h.Name.Local == "SequenceAcknowledgement" && says && len(r.m.Invalid) < maxBroken {
		r.m.Invalid = append(r.m.Invalid, *h)
	}
}

// broken says which element breaks a rule.
func broken(e *soap.Element, format string, args ...any) string {
	return "wsrm: " + e.Name.Local + ": " + fmt.Sprintf(format, args...)
}

func (r *reader) fail(e *soap.Element, format string, args ...any) {
	if r.err == "" {
		r.err = broken(e, format, args...)
	}
}

func (r *reader) child(e *soap.Element, local string) *soap.Element {
	return e.Child(soap.Name{Space: r.space, Local: local})
}

func text(e *soap.Element) string {
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.Text)
}

// identifier is that of the sequence, which most elements must name.
func (r *reader) identifier(e *soap.Element) string {
	id := text(r.child(e, "Identifier"))
	if id == "" {
		r.fail(e, "no Identifier")
	}
	return id
}

func (r *reader) number(e *soap.Element, s string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 1 || n > maxNumber {
		r.fail(e, "%.40q is not a message number", s)
	}
	return n
}

// beyond reports whether a text is a number above the greatest one.
func beyond(s string) bool {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return err == nil && n > maxNumber || errors.Is(err, strconv.ErrRange)
}

// optional is the number in a child; 0 if there is none.
func (r *reader) optional(e *soap.Element, local string) uint64 {
	if c := r.child(e, local); c != nil {
		return r.number(c, c.Text)
	}
	return 0
}

func (r *reader) block(h *soap.Element) {
	switch h.Name.Local {
	case "Sequence":
		if r.m.Sequence != "" {
			r.fail(h, "a second one")
		}
		r.m.Sequence = r.identifier(h)
		number := r.child(h, "MessageNumber")
		if number == nil {
			r.fail(h, "no MessageNumber")
			return
		}
		if r.m.Rollover = beyond(number.Text); r.m.Rollover {
			r.note(broken(h, "%.40q is beyond the greatest message number", number.Text))
			return
		}
		r.m.Number = r.number(number, number.Text)
		r.m.Last = r.m.Version == v10 && r.child(h, "LastMessage") != nil
	case "AckRequested":
		r.m.AckRequested = append(r.m.AckRequested, r.identifier(h))
		if r.m.Version == v10 {
			r.optional(h, "MaxMessageNumberUsed")
		}
	case "SequenceAcknowledgement":
		r.acknowledgement(h)
	case "SequenceFault":
		code := text(r.child(h, "FaultCode"))
		r.m.Fault = code[strings.LastIndexByte(code, ':')+1:]
		if r.m.Fault == "" {
			r.fail(h, "no FaultCode")
		}
	}
}

func (r *reader) acknowledgement(h *soap.Element) {
	a := Acknowledgement{Sequence: r.identifier(h)}
	for i := range h.Children {
		c := &h.Children[i]
		switch {
		case c.Name.Space != r.space:
		case c.Name.Local == "AcknowledgementRange":
			a.Ranges = append(a.Ranges, [2]uint64{r.number(c, c.Attr("Lower")), r.number(c, c.Attr("Upper"))})
		case c.Name.Local == "Nack":
			a.Nacks = append(a.Nacks, r.number(c, c.Text))
		case c.Name.Local == "None" && r.m.Version == v11:
			a.None = true
		case c.Name.Local == "Final" && r.m.Version == v11:
			a.Final = true
		}
	}
	slices.SortStableFunc(a.Ranges, func(x, y [2]uint64) int { return cmp.Compare(x[0], y[0]) })
	last := uint64(0)
	for _, one := range a.Ranges {
		if one[0] <= last || one[1] < one[0] {
			r.fail(h, "ranges that overlap, or end before they begin")
		}
		last = one[1]
	}
	if len(a.Ranges) > 0 && a.None {
		a.None = false // Apache CXF writes it after every range; what the range says has arrived
		r.note(broken(h, "ranges beside None"))
	}
	switch covers := len(a.Ranges) > 0 || a.None; {
	case len(a.Nacks) > 0 && (covers || a.Final):
		r.fail(h, "nacks beside ranges, None or Final")
	case len(a.Nacks) == 0 && !covers:
		r.fail(h, "neither ranges nor nacks")
	}
	r.m.Acknowledgements = append(r.m.Acknowledgements, a)
}

// address is that of an endpoint reference, of whichever version of WS-Addressing.
func (r *reader) address(e *soap.Element) string {
	if e == nil {
		return ""
	}
	for _, space := range []string{xmlns.WSA, xmlns.WSA200408} {
		if a := e.Child(soap.Name{Space: space, Local: "Address"}); a != nil {
			return text(a)
		}
	}
	r.fail(e, "no Address")
	return ""
}

// terms are those of a body about a new sequence; the addresses are in other places.
func (r *reader) terms(b *soap.Element) *Terms {
	return &Terms{
		Expires:    text(r.child(b, "Expires")),
		Incomplete: text(r.child(b, "IncompleteSequenceBehavior")),
	}
}

func (r *reader) offer(o *soap.Element) *OfferedSequence {
	offer := &OfferedSequence{
		Sequence: r.identifier(o), Expires: text(r.child(o, "Expires")),
		Incomplete: text(r.child(o, "IncompleteSequenceBehavior")),
	}
	if r.m.Version == v11 {
		offer.Endpoint = r.address(r.child(o, "Endpoint"))
	}
	return offer
}

func (r *reader) control(b *soap.Element) {
	switch b.Name.Local {
	case "CreateSequence":
		r.m.Sequence = ""
		acksTo := r.child(b, "AcksTo")
		if acksTo == nil {
			r.fail(b, "no AcksTo")
		}
		r.m.Terms = r.terms(b)
		r.m.Terms.AcksTo = r.address(acksTo)
		if o := r.child(b, "Offer"); o != nil {
			r.m.Terms.Offer = r.offer(o)
		}
	case "CreateSequenceResponse":
		r.m.Sequence = r.identifier(b)
		r.m.Terms = r.terms(b)
		if a := r.child(b, "Accept"); a != nil {
			r.m.Terms.AcksTo = r.address(r.child(a, "AcksTo"))
		}
	case "CloseSequence", "CloseSequenceResponse", "TerminateSequence", "TerminateSequenceResponse":
		r.m.Sequence = r.identifier(b)
		if r.m.Version == v11 {
			r.m.LastNumber = r.optional(b, "LastMsgNumber")
		}
	default:
		return
	}
	r.m.Control = b.Name.Local
}
