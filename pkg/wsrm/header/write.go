package header

import (
	"strconv"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// writer makes elements of one version.
type writer struct{ space, addressing string }

// Elements gives the header blocks and the children of Body that say what m says; a message of an application keeps its own Body.
func (m *Message) Elements() (header, body []soap.Element) {
	w := writer{m.Version.Namespace(), m.Addressing}
	if w.addressing == "" {
		w.addressing = xmlns.WSA
		if m.Version == V10 {
			w.addressing = xmlns.WSA200408
		}
	}
	if s := m.Sequence; s != nil {
		e := w.of("Sequence", w.identifier(s.Identifier), w.number("MessageNumber", s.Number))
		if s.Last {
			e.Children = append(e.Children, w.of("LastMessage"))
		}
		e.MustUnderstand = true
		header = append(header, e)
	}
	for _, a := range m.AckRequested {
		e := w.of("AckRequested", w.identifier(a.Identifier))
		if a.MaxUsed > 0 {
			e.Children = append(e.Children, w.number("MaxMessageNumberUsed", a.MaxUsed))
		}
		header = append(header, e)
	}
	for i := range m.Acknowledgements {
		header = append(header, w.acknowledgement(&m.Acknowledgements[i]))
	}
	if f := m.Fault; f != nil {
		code := w.text("FaultCode", "n:"+f.Code) // the prefix that package soap gives namespaces
		e := w.of("SequenceFault", code)
		if f.Identifier != "" && m.Version == V11 {
			e.Children = append(e.Children, w.of("Detail", w.identifier(f.Identifier)))
		} else if f.Identifier != "" {
			e.Children = append(e.Children, w.identifier(f.Identifier))
		}
		header = append(header, e)
	}
	if m.Control != nil {
		body = append(body, w.control(m.Control))
	}
	return header, body
}

func (w writer) of(local string, children ...soap.Element) soap.Element {
	return soap.Element{Name: soap.Name{Space: w.space, Local: local}, Children: children}
}

func (w writer) text(local, text string) soap.Element {
	e := w.of(local)
	e.Text = text
	return e
}

func (w writer) identifier(id string) soap.Element { return w.text("Identifier", id) }

func (w writer) number(local string, n uint64) soap.Element {
	return w.text(local, strconv.FormatUint(n, 10))
}

func (w writer) reference(local, address string) soap.Element {
	return w.of(local, soap.Element{Name: soap.Name{Space: w.addressing, Local: "Address"}, Text: address})
}

func (w writer) acknowledgement(a *Acknowledgement) soap.Element {
	e := w.of("SequenceAcknowledgement", w.identifier(a.Identifier))
	for _, r := range a.Ranges {
		one := w.of("AcknowledgementRange")
		one.Attrs = []soap.Attr{{Name: "Lower", Value: strconv.FormatUint(r.First, 10)}, {Name: "Upper", Value: strconv.FormatUint(r.Last, 10)}}
		e.Children = append(e.Children, one)
	}
	for _, n := range a.Nacks {
		e.Children = append(e.Children, w.number("Nack", n))
	}
	if a.None {
		e.Children = append(e.Children, w.of("None"))
	}
	if a.Final {
		e.Children = append(e.Children, w.of("Final"))
	}
	return e
}

func (w writer) control(c *Control) soap.Element {
	e := w.of(string(c.Kind))
	add := func(local, text string) {
		if text != "" {
			e.Children = append(e.Children, w.text(local, text))
		}
	}
	if c.Kind == CreateSequence {
		e.Children = append(e.Children, w.reference("AcksTo", c.AcksTo))
		add("Expires", c.Expires)
		if c.Offer != nil {
			e.Children = append(e.Children, w.offer(c.Offer))
		}
		return e
	}
	add("Identifier", c.Identifier)
	add("Expires", c.Expires)
	add("IncompleteSequenceBehavior", c.Incomplete)
	if c.Kind == CreateSequenceResponse && c.AcksTo != "" {
		e.Children = append(e.Children, w.of("Accept", w.reference("AcksTo", c.AcksTo)))
	}
	if c.LastNumber > 0 {
		e.Children = append(e.Children, w.number("LastMsgNumber", c.LastNumber))
	}
	return e
}

func (w writer) offer(o *Offer) soap.Element {
	e := w.of("Offer", w.identifier(o.Identifier))
	if o.Endpoint != "" {
		e.Children = append(e.Children, w.reference("Endpoint", o.Endpoint))
	}
	if o.Expires != "" {
		e.Children = append(e.Children, w.text("Expires", o.Expires))
	}
	if o.Incomplete != "" {
		e.Children = append(e.Children, w.text("IncompleteSequenceBehavior", o.Incomplete))
	}
	return e
}
