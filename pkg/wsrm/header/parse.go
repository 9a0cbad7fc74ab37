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
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// maxBroken bounds Message.Broken: who sends more of it has said enough.
const maxBroken = 8

// Parse reads what an envelope says about sequences; nil if it says nothing. Elements that the
// version does not have are passed over, as its schema allows. What breaks a rule is left out and
// listed in Message.Broken; everything beside it stands.
func Parse(e *soap.Envelope) *Blocks {
	fault, isFault := e.Fault()
	r := reader{m: &Blocks{Version: versionOf(e, &fault)}}
	if r.m.Version == 0 {
		return nil
	}
	r.space = r.m.Version.Namespace()
	if isFault && fault.SubcodeSpace == r.space {
		r.m.Fault = &Fault{Code: fault.Subcode}
		for i := range fault.Detail {
			if d := &fault.Detail[i]; d.Name == (soap.Name{Space: r.space, Local: "Identifier"}) {
				r.m.Fault.Identifier = text(d)
			}
		}
	}
	r.each(e.Header, r.block)
	r.each(e.Body, r.control)
	return r.m
}

// reader reads one element after another.
type reader struct {
	m     *Blocks
	space string
	err   *Error // the first rule that the element at hand breaks
}

// each reads those elements of a list that are of the version. Of one that breaks a rule nothing
// stays.
func (r *reader) each(list []soap.Element, read func(*soap.Element)) {
	for i := range list {
		if list[i].Name.Space != r.space {
			continue
		}
		before := *r.m
		if read(&list[i]); r.err != nil {
			*r.m = before
			r.note(r.err)
		}
		r.err = nil
	}
}

func (r *reader) note(broken *Error) {
	if len(r.m.Broken) < maxBroken {
		r.m.Broken = append(r.m.Broken, broken)
	}
}

func (r *reader) fail(e *soap.Element, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Element: e.Name.Local, Err: fmt.Errorf(format, args...)}
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

// optional is the number in a child, 0 if there is none.
func (r *reader) optional(e *soap.Element, local string) uint64 {
	if c := r.child(e, local); c != nil {
		return r.number(c, c.Text)
	}
	return 0
}

func (r *reader) block(h *soap.Element) {
	switch h.Name.Local {
	case "Sequence":
		if r.m.Sequence != nil {
			r.fail(h, "a second one")
		}
		s := &Sequence{Identifier: r.identifier(h)}
		number := r.child(h, "MessageNumber")
		if number == nil {
			r.fail(h, "no MessageNumber")
			return
		}
		s.Number = r.number(number, number.Text)
		s.Last = r.m.Version == V10 && r.child(h, "LastMessage") != nil
		r.m.Sequence = s
	case "AckRequested":
		a := AckRequested{Identifier: r.identifier(h)}
		if r.m.Version == V10 {
			a.MaxUsed = r.optional(h, "MaxMessageNumberUsed")
		}
		r.m.AckRequested = append(r.m.AckRequested, a)
	case "SequenceAcknowledgement":
		r.acknowledgement(h)
	case "SequenceFault":
		f := &Fault{Code: text(r.child(h, "FaultCode"))}
		f.Code = f.Code[strings.LastIndexByte(f.Code, ':')+1:]
		if f.Code == "" {
			r.fail(h, "no FaultCode")
		}
		if detail := r.child(h, "Detail"); detail != nil {
			f.Identifier = text(r.child(detail, "Identifier"))
		} else {
			f.Identifier = text(r.child(h, "Identifier"))
		}
		r.m.Fault = f
	}
}

var (
	errNone    = errors.New("ranges beside None")
	errBoth    = errors.New("nacks beside ranges, None or Final")
	errNothing = errors.New("neither ranges nor nacks")
	errOverlap = errors.New("ranges that overlap, or end before they begin")
)

func (r *reader) acknowledgement(h *soap.Element) {
	a := Acknowledgement{Identifier: r.identifier(h)}
	for i := range h.Children {
		c := &h.Children[i]
		switch {
		case c.Name.Space != r.space:
		case c.Name.Local == "AcknowledgementRange":
			a.Ranges = append(a.Ranges, wsrm.Range{First: r.number(c, c.Attr("Lower")), Last: r.number(c, c.Attr("Upper"))})
		case c.Name.Local == "Nack":
			a.Nacks = append(a.Nacks, r.number(c, c.Text))
		case c.Name.Local == "None" && r.m.Version == V11:
			a.None = true
		case c.Name.Local == "Final" && r.m.Version == V11:
			a.Final = true
		}
	}
	slices.SortStableFunc(a.Ranges, func(x, y wsrm.Range) int { return cmp.Compare(x.First, y.First) })
	last := uint64(0)
	for _, one := range a.Ranges {
		if one.First <= last || one.Last < one.First {
			r.fail(h, "%w", errOverlap)
		}
		last = one.Last
	}
	if len(a.Ranges) > 0 && a.None {
		a.None = false // Apache CXF writes it behind every range; what the range says has arrived
		r.note(&Error{Element: h.Name.Local, Err: errNone})
	}
	switch covers := len(a.Ranges) > 0 || a.None; {
	case len(a.Nacks) > 0 && (covers || a.Final):
		r.fail(h, "%w", errBoth)
	case len(a.Nacks) == 0 && !covers:
		r.fail(h, "%w", errNothing)
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

func (r *reader) control(b *soap.Element) {
	c := &Control{Kind: Kind(b.Name.Local), Expires: text(r.child(b, "Expires"))}
	switch c.Kind {
	case CreateSequence:
		acksTo := r.child(b, "AcksTo")
		if acksTo == nil {
			r.fail(b, "no AcksTo")
		}
		c.AcksTo = r.address(acksTo)
		if o := r.child(b, "Offer"); o != nil {
			c.Offer = &Offer{Identifier: r.identifier(o), Expires: text(r.child(o, "Expires"))}
			if r.m.Version == V11 {
				c.Offer.Endpoint, c.Offer.Incomplete = r.address(r.child(o, "Endpoint")), text(r.child(o, "IncompleteSequenceBehavior"))
			}
		}
	case CreateSequenceResponse:
		c.Identifier = r.identifier(b)
		if r.m.Version == V11 {
			c.Incomplete = text(r.child(b, "IncompleteSequenceBehavior"))
		}
		if a := r.child(b, "Accept"); a != nil {
			c.AcksTo = r.address(r.child(a, "AcksTo"))
		}
	case CloseSequence, CloseSequenceResponse, TerminateSequence, TerminateSequenceResponse:
		c.Identifier, c.Expires = r.identifier(b), ""
		if r.m.Version == V11 {
			c.LastNumber = r.optional(b, "LastMsgNumber")
		}
	default:
		return
	}
	r.m.Control = c
}
