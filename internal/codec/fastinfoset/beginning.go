package fastinfoset

import "encoding/binary"

// document writes all that stands before the children (X.891 7.2, C.2).
func (w *InfosetWriter) document(p *DocumentProperties) {
	if p.XMLDeclaration {
		w.dst = append(w.dst, "<?xml encoding='finf'?>"...)
	}
	w.dst = append(w.dst, magic...)
	present := byte(0)
	for i, is := range [...]bool{
		len(p.Version) > 0, p.Standalone != "", len(p.Encoding) > 0, len(p.Unparsed) > 0, len(p.Notations) > 0,
		w.External != nil || w.Initial != nil, len(p.Additional) > 0,
	} {
		if is {
			present |= 1 << i
		}
	}
	w.dst = append(w.dst, present)
	if len(p.Additional) > 0 {
		w.count(len(p.Additional))
		for _, a := range p.Additional {
			w.text(a.URI)
			w.string(a.Data)
		}
	}
	w.vocabulary()
	w.declared(p.Notations, 0xC0, false)
	w.declared(p.Unparsed, 0xD0, true)
	if len(p.Encoding) > 0 {
		w.text(p.Encoding)
	}
	switch p.Standalone {
	case "":
	case "no":
		w.dst = append(w.dst, 0)
	case "yes":
		w.dst = append(w.dst, 1)
	default:
		w.fail(Malformed, "standalone is yes or no, not %q", p.Standalone)
	}
	if len(p.Version) > 0 {
		w.value(&w.others, Value{Bytes: p.Version})
	}
}

// count writes a number of items (X.891 C.21).
func (w *InfosetWriter) count(n int) {
	switch {
	case n > maxIndex:
		w.fail(Excessive, "%d items where %d are the most", n, maxIndex)
	case n <= 128:
		w.dst = append(w.dst, byte(n-1))
	default:
		n -= 129
		w.dst = append(w.dst, 0x80|byte(n>>16), byte(n>>8), byte(n))
	}
}

// vocabulary writes an initial vocabulary (X.891 7.2.6, C.2.5), if there is one.
func (w *InfosetWriter) vocabulary() {
	if w.External == nil && w.Initial == nil {
		return
	}
	at := len(w.dst)
	w.dst = append(w.dst, 0, 0)
	present := uint16(0)
	if w.External != nil {
		present = 0x1000
		w.text([]byte(w.ExternalURI))
		w.load(w.External)
	}
	if v := w.Initial; v != nil {
		for i, list := range [...][][]byte{v.Prefixes, v.Namespaces, v.Locals, v.NCNames, v.URIs} {
			if len(list) > 0 {
				present |= 0x0200 >> i
				w.count(len(list))
			}
			for _, text := range list {
				w.text(text)
			}
		}
		for i, list := range [...][]Value{v.Values, v.Chunks, v.Others} {
			if len(list) > 0 {
				present |= 0x0010 >> i
				w.count(len(list))
			}
			for _, value := range list {
				w.valid(value.Bytes)
				w.literal(0, Value{Bytes: value.Bytes})
			}
		}
		w.load(&Vocabulary{
			Prefixes: v.Prefixes, Namespaces: v.Namespaces, Locals: v.Locals, NCNames: v.NCNames, URIs: v.URIs,
			Values: v.Values, Chunks: v.Chunks, Others: v.Others,
		})
	}
	binary.BigEndian.PutUint16(w.dst[at:], present)
}

// load has the entries of the external vocabulary in the tables, in their order.
func (w *InfosetWriter) load(v *Vocabulary) {
	for i, from := range [...][][]byte{v.Prefixes, v.Namespaces, v.Locals, v.NCNames, v.URIs} {
		to := [...]*interned{&w.prefixes, &w.namespaces, &w.locals, &w.ncnames, &w.uris}[i]
		for _, text := range from {
			to.add(text)
		}
	}
	for i, from := range [...][]Value{v.Values, v.Chunks, v.Others} {
		to := [...]*interned{&w.values, &w.chunks, &w.others}[i]
		for _, value := range from {
			to.add(value.Bytes)
		}
	}
	for i, from := range [...][]Name{v.Elements, v.Attributes} {
		to := [...]*interned{&w.elements, &w.attributes}[i]
		for _, name := range from {
			key, known := w.key(&name)
			if !known {
				w.fail(Unknown, "the name %.40q of the external vocabulary, whose parts are not there", name.Local)
			}
			to.add(key[:])
		}
	}
}

// declared writes notations (X.891 7.11) or unparsed entities (7.10), and their end.
func (w *InfosetWriter) declared(list []NotationOrEntity, first byte, entities bool) {
	for _, d := range list {
		bits := two(d.System, d.Public)
		if entities {
			bits &= 1
		}
		w.dst = append(w.dst, first|bits)
		w.identifying(&w.ncnames, d.Name, true)
		if entities {
			w.identifying(&w.uris, d.System, false)
			w.identifiers(d.Public)
			w.identifying(&w.ncnames, d.Notation, true)
		} else {
			w.identifiers(d.System, d.Public)
		}
	}
	if len(list) > 0 {
		w.dst = append(w.dst, 0xF0)
	}
}
