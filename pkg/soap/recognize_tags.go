package soap

import "bytes"

func isNameByte(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', '>', '/', '<', '=', '"', '\'', '!', '?', '&':
		return false
	}
	return true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func splitName(name []byte) (prefix, local []byte) {
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return nil, name
}

type tag struct {
	at         int // offset of its '<'
	name       scannedName
	end, empty bool
}

// tag reads the next start or end tag; ok is false when the bytes end first, or are not XML. depth
// is that of a start tag found here.
func (s *envelopeScanner) tag(depth int) (tag, bool) {
	for {
		n := bytes.IndexByte(s.b[s.at:], '<')
		if n < 0 {
			return tag{}, false
		}
		s.at += n
		rest := s.b[s.at:]
		var skipped bool
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			skipped = s.skipPast("-->")
		case bytes.HasPrefix(rest, []byte("<![CDATA[")):
			skipped = s.skipPast("]]>")
		case bytes.HasPrefix(rest, []byte("<?")):
			skipped = s.skipPast("?>")
		case bytes.HasPrefix(rest, []byte("</")):
			t := tag{at: s.at, end: true}
			s.drop(depth - 1)
			return t, s.skipPast(">")
		default:
			return s.startTag(depth)
		}
		if !skipped {
			return tag{}, false
		}
	}
}

func (s *envelopeScanner) skipPast(mark string) bool {
	n := bytes.Index(s.b[s.at:], []byte(mark))
	if n < 0 {
		return false
	}
	s.at += n + len(mark)
	return true
}

func (s *envelopeScanner) startTag(depth int) (tag, bool) {
	t := tag{at: s.at}
	i := s.at + 1
	from := i
	for i < len(s.b) && isNameByte(s.b[i]) {
		i++
	}
	raw := s.b[from:i]
	for {
		for i < len(s.b) && isSpace(s.b[i]) {
			i++
		}
		if i >= len(s.b) {
			return t, false
		}
		if s.b[i] == '>' {
			i++
			break
		}
		if s.b[i] == '/' {
			t.empty = true
			i++
			continue
		}
		next, ok := s.attribute(i, depth)
		if !ok {
			return t, false
		}
		i = next
	}
	s.at = i
	prefix, local := splitName(raw)
	t.name = scannedName{s.namespace(prefix), local}
	return t, len(raw) > 0
}

// attribute reads one attribute at i and keeps it if it declares a namespace; it returns the offset
// after it.
func (s *envelopeScanner) attribute(i, depth int) (int, bool) {
	from := i
	for i < len(s.b) && isNameByte(s.b[i]) {
		i++
	}
	name := s.b[from:i]
	for i < len(s.b) && isSpace(s.b[i]) {
		i++
	}
	if len(name) == 0 || i >= len(s.b) || s.b[i] != '=' {
		return i, false
	}
	i++
	for i < len(s.b) && isSpace(s.b[i]) {
		i++
	}
	if i >= len(s.b) || s.b[i] != '"' && s.b[i] != '\'' {
		return i, false
	}
	n := bytes.IndexByte(s.b[i+1:], s.b[i])
	if n < 0 {
		return i, false
	}
	value := s.b[i+1 : i+1+n]
	prefix, local := splitName(name)
	// Declarations deeper than the children of Header and Body are not needed.
	if depth <= 2 {
		switch {
		case string(prefix) == "xmlns":
			s.declare(scope{depth, local, value})
		case prefix == nil && string(local) == "xmlns":
			s.declare(scope{depth, nil, value})
		}
	}
	return i + n + 2, true
}
