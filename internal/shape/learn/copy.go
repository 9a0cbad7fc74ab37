package learn

// detach copies the texts of a document out of the message they were cut from.
func (f *document) detach() {
	var d detacher
	d.add(&f.before.text, &f.after.text)
	d.draft(f.root)
	size := 0
	for _, t := range d.texts {
		size += len(*t)
	}
	octets := make([]byte, 0, size)
	for _, t := range d.texts {
		octets = append(octets, *t...)
	}
	rest := string(octets)
	for _, t := range d.texts {
		n := len(*t)
		*t, rest = rest[:n], rest[n:]
	}
}

// detacher gathers the texts of a document.
type detacher struct{ texts []*string }

func (d *detacher) add(texts ...*string) { d.texts = append(d.texts, texts...) }

func (d *detacher) name(n *name) { d.add(&n.prefix, &n.local, &n.uri) }

func (d *detacher) draft(x *draft) {
	x.raw, x.before = "", gap{} // of use only while the message is read
	d.name(&x.name)
	d.add(&x.empty, &x.open, &x.end, &x.blank, &x.tail.text)
	for _, a := range x.attrs {
		d.name(&a.name)
		d.add(&a.lead, &a.eq, &a.quote)
		for _, v := range a.fixed {
			for i := range v {
				d.add(&v[i].text)
			}
		}
	}
	for _, e := range x.entries {
		for o := range e.forms {
			d.add(&o.gap.text)
			d.draft(o.element)
		}
	}
}
