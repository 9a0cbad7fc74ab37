package shape

// Flush hands out what was written so far. settled is how much of the texts behind the last item is among it, for [Joiner.Settle]:
// what a joiner gives out is then all that was written, but for the beginning of a number, a name or the like, which waits for the
// rest of it. force: that goes out as well, and the rest of the message as text.
func (s *Splitter) Flush(force bool) (settled int64, err error) {
	if s.text {
		return 0, s.out.err
	}
	o := &s.p.Ops()[s.pc]
	switch {
	case o.code == opValue && s.at < len(s.in):
		s.partOfValue(o, force)
	case o.code == opColumn && len(s.col.zigzags) > 0:
		s.group(o, true)
	}
	if len(s.out.seg) > 0 || !s.out.begun {
		s.out.flush()
		s.cut = s.pos()
	}
	rest := int64(len(s.in) - s.at)
	switch {
	case rest == 0 || s.out.err != nil:
		return s.run, s.out.err
	case o.code == opText || o.code == opAgain:
		s.ahead = ahead{s.pos(), int(rest)} // the beginning of a text that fits
		return s.run + rest, nil
	case force:
		return 0, s.escape()
	}
	return s.run, nil
}

// partOfValue hands out what is there of a value whose end is not in sight: the beginning of a text, or of what travels in pieces;
// of anything else only if it must be.
func (s *Splitter) partOfValue(o *op, force bool) {
	n, whole := s.scan.find(s.in[s.at:], o.until, false)
	if whole || n == 0 {
		return
	}
	switch {
	case o.typ.pieces():
		s.takePieces(o, n)
	case s.inText || force || o.typ == TypeText || o.typ == TypeString || o.typ == TypeOpen:
		s.takeText(o, n)
	}
}

// Settle appends to dst what of the texts behind the last item holds, octets in all: see [Splitter.Flush]. Errors are of type [Error].
func (j *Joiner) Settle(dst []byte, octets int64) ([]byte, error) {
	if j.p.Encoding().isUTF16() {
		narrow, err := j.settle(j.utf8, octets)
		if err != nil {
			return dst, err
		}
		wide, n, ok := widenText(j.p.Encoding(), dst, narrow, false)
		if !ok {
			return dst, &Error{Code: Malformed, What: "content that is no UTF-8"}
		}
		j.utf8 = append(narrow[:0], narrow[n:]...)
		return wide, nil
	}
	return j.settle(dst, octets)
}

func (j *Joiner) settle(dst []byte, octets int64) ([]byte, error) {
	if octets < int64(j.given) || octets > int64(len(j.pending)) {
		return dst, &Error{Code: Malformed, What: "more settled than stands behind the last item, or less than before"}
	}
	dst = append(dst, j.pending[j.given:octets]...)
	j.given = int(octets)
	return dst, nil
}
