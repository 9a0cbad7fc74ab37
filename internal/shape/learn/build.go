package learn

import "github.com/hhfr/hhfr/internal/shape"

// writer writes drafts as a shape.
type writer struct{ *shape.Builder }

func (w writer) slot(s *slot) { w.Slot(s.find().number) }

func (w writer) gap(g gap) {
	if g.value {
		w.Value(shape.TypeText, shape.UntilTag)
	} else {
		w.Text(g.text)
	}
}

func (w writer) name(n name) {
	if n.slot != nil {
		w.slot(n.slot)
		w.Text(":")
	} else if n.prefix != "" {
		w.Text(n.prefix)
		w.Text(":")
	}
	w.Text(n.local)
}

func (w writer) element(d *draft) {
	w.Begin(shape.Element)
	w.Text("<")
	w.name(d.name)
	for _, a := range d.attrs {
		w.attribute(a)
	}
	both := d.empty != "" && d.open != ""
	if both {
		w.Begin(shape.Choice)
	}
	w.Text(d.empty)
	if both {
		w.Begin(shape.Sequence)
	}
	if d.open != "" {
		w.Text(d.open)
		w.inside(d)
		w.Text("</")
		w.name(d.name)
		w.Text(d.end)
	}
	if both {
		w.End()
		w.End()
	}
	w.End()
}

func (w writer) inside(d *draft) {
	switch {
	case d.any:
		w.Value(shape.TypeOpen, shape.UntilElement)
	case d.leaf:
		w.Value(d.leafType, shape.UntilTag)
	default:
		for _, e := range d.entries {
			w.entry(e)
		}
		w.gap(d.tail)
	}
}

func (w writer) entry(e *entry) {
	wrapped := e.array || e.optional
	if e.array {
		w.Begin(shape.Array)
	} else if e.optional {
		w.Begin(shape.Optional)
	}
	if e.element == nil {
		w.Begin(shape.Choice)
		for _, o := range e.alts {
			w.form(o, true)
		}
		w.End()
	} else {
		w.form(e, wrapped)
	}
	if wrapped {
		w.End()
	}
}

// form writes an element with what stands before it; alone: as one node.
func (w writer) form(e *entry, alone bool) {
	sequence := alone && (e.gap.value || e.gap.text != "")
	if sequence {
		w.Begin(shape.Sequence)
	}
	w.gap(e.gap)
	w.element(e.element)
	if sequence {
		w.End()
	}
}

func (w writer) attribute(a *attribute) {
	if a.optional {
		w.Begin(shape.Optional)
	}
	w.Begin(shape.Attribute)
	w.Text(a.lead)
	switch {
	case a.declares != nil:
		w.Text("xmlns:")
		w.slot(a.declares)
	case a.name.local == "xmlns" && a.name.prefix != "":
		w.Text("xmlns:")
		w.Text(a.name.prefix)
	default:
		w.name(a.name)
	}
	w.Text(a.eq)
	switch {
	case len(a.fixed) > 1:
		w.Begin(shape.Choice)
		for _, parts := range a.fixed {
			w.Begin(shape.Sequence)
			w.parts(parts)
			w.Text(a.quote)
			w.End()
		}
		w.End()
	case len(a.fixed) == 1:
		w.parts(a.fixed[0])
		w.Text(a.quote)
	default:
		until := shape.UntilQuote
		if a.quote == "'" {
			until = shape.UntilApostrophe
		}
		w.Value(a.typ, until)
		w.Text(a.quote)
	}
	w.End()
	if a.optional {
		w.End()
	}
}

func (w writer) parts(parts []part) {
	for _, p := range parts {
		if p.slot != nil {
			w.slot(p.slot)
		} else {
			w.Text(p.text)
		}
	}
}
