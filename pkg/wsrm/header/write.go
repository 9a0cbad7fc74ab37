package header

import (
	"strconv"

	"github.com/hhfr/hhfr/pkg/soap"
)

// elementWriter makes elements of one version.
type elementWriter struct{ version, space, addressing string }

// Elements returns the header blocks and the children of Body that say what b says, in the order of
// the standard (1.1, sections 3.4 to 3.9; 1.0, section 3). addressing is the namespace of endpoint
// references. A message of an application keeps its own Body. Faults are of package soap, but for
// the header block SequenceFault, which goes with a fault of SOAP 1.1; detail is what stands in it.
func (b *Blocks) Elements(addressing string, detail ...soap.Element) (header, body []soap.Element) {
	w := elementWriter{b.Version, namespaces[b.Version], addressing}
	if b.Number > 0 {
		e := w.of("Sequence", w.text("Identifier", b.Sequence), w.number("MessageNumber", b.Number))
		if b.Last {
			e.Children = append(e.Children, w.of("LastMessage"))
		}
		e.MustUnderstand = true
		header = append(header, e)
	}
	for _, id := range b.AckRequested {
		header = append(header, w.of("AckRequested", w.text("Identifier", id)))
	}
	for i := range b.Acknowledgements {
		header = append(header, w.acknowledgement(&b.Acknowledgements[i]))
	}
	if b.Fault != "" {
		header = append(header, w.fault(b.Fault, detail))
	}
	if b.Control != "" {
		body = append(body, w.control(b))
	}
	return header, body
}

func (w elementWriter) of(local string, children ...soap.Element) soap.Element {
	return soap.Element{Name: soap.Name{Space: w.space, Local: local}, Children: children}
}

func (w elementWriter) text(local, text string) soap.Element {
	e := w.of(local)
	e.Text = text
	return e
}

func (w elementWriter) number(local string, n uint64) soap.Element {
	return w.text(local, strconv.FormatUint(n, 10))
}

func (w elementWriter) reference(local, address string) soap.Element {
	return w.of(local, soap.Element{Name: soap.Name{Space: w.addressing, Local: "Address"}, Text: address})
}

// fault is the header block SequenceFault. 1.0 has the detail beside the code, 1.1 in an element of
// its own.
func (w elementWriter) fault(code string, detail []soap.Element) soap.Element {
	c := w.text("FaultCode", "f:"+code)
	c.Attrs = []soap.Attr{{Name: "xmlns:f", Value: w.space}}
	e := w.of("SequenceFault", c)
	switch {
	case len(detail) == 0:
	case w.version == v10:
		e.Children = append(e.Children, detail...)
	default:
		e.Children = append(e.Children, w.of("Detail", detail...))
	}
	return e
}

func (w elementWriter) acknowledgement(a *Acknowledgement) soap.Element {
	e := w.of("SequenceAcknowledgement", w.text("Identifier", a.Sequence))
	for _, r := range a.Ranges {
		one := w.of("AcknowledgementRange")
		one.Attrs = []soap.Attr{{Name: "Lower", Value: strconv.FormatUint(r[0], 10)},
			{Name: "Upper", Value: strconv.FormatUint(r[1], 10)}}
		e.Children = append(e.Children, one)
	}
	for _, n := range a.Nacks {
		e.Children = append(e.Children, w.number("Nack", n))
	}
	if w.version == v11 && a.None {
		e.Children = append(e.Children, w.of("None"))
	}
	if w.version == v11 && a.Final {
		e.Children = append(e.Children, w.of("Final"))
	}
	return e
}

// control is the body of a message about a sequence.
func (w elementWriter) control(b *Blocks) soap.Element {
	e := w.of(b.Control)
	add := func(local, text string) {
		if text != "" {
			e.Children = append(e.Children, w.text(local, text))
		}
	}
	t := b.Terms
	switch {
	case b.Control == "CreateSequence" && t != nil:
		e.Children = append(e.Children, w.reference("AcksTo", t.AcksTo))
		add("Expires", t.Expires)
		if t.Offer != nil {
			e.Children = append(e.Children, w.offer(t.Offer))
		}
	case b.Control == "CreateSequenceResponse" && t != nil:
		add("Identifier", b.Sequence)
		add("Expires", t.Expires)
		if w.version == v11 {
			add("IncompleteSequenceBehavior", t.Incomplete)
		}
		if t.AcksTo != "" {
			e.Children = append(e.Children, w.of("Accept", w.reference("AcksTo", t.AcksTo)))
		}
	default:
		add("Identifier", b.Sequence)
		if w.version == v11 && b.LastNumber > 0 {
			e.Children = append(e.Children, w.number("LastMsgNumber", b.LastNumber))
		}
	}
	return e
}

func (w elementWriter) offer(o *OfferedSequence) soap.Element {
	e := w.of("Offer", w.text("Identifier", o.Sequence))
	if w.version == v11 {
		e.Children = append(e.Children, w.reference("Endpoint", o.Endpoint))
	}
	if o.Expires != "" {
		e.Children = append(e.Children, w.text("Expires", o.Expires))
	}
	if w.version == v11 && o.Incomplete != "" {
		e.Children = append(e.Children, w.text("IncompleteSequenceBehavior", o.Incomplete))
	}
	return e
}
