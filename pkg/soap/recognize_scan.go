package soap

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// maxScopes bounds the namespace declarations kept during recognition.
const maxScopes = 256

// scannedName is a Name whose parts are in the message.
type scannedName struct{ space, local []byte }

func (n scannedName) is(space, local string) bool {
	return string(n.space) == space && string(n.local) == local
}

// version is that of an envelope in the namespace, like [versionOf].
func (n scannedName) version() Version {
	for v := V11; int(v) < len(versions); v++ {
		if string(n.space) == versions[v].namespace {
			return v
		}
	}
	return None
}

// scannedEnvelope is what [Recognized] says, in the bytes of the message.
type scannedEnvelope struct {
	version         Version
	operation       scannedName
	action          []byte // nil: none was found
	fault, complete bool
}

// scope is one namespace declaration, made by a tag at depth.
type scope struct {
	depth      int
	prefix, ns []byte
}

type envelopeScanner struct {
	b      []byte
	at     int
	scopes int
	first  [16]scope // what most messages need
	more   []scope
}

// scope is the i-th declaration that is in force.
func (s *envelopeScanner) scope(i int) *scope {
	if i < len(s.first) {
		return &s.first[i]
	}
	return &s.more[i-len(s.first)]
}

// declare keeps a declaration.
func (s *envelopeScanner) declare(d scope) {
	switch n := s.scopes - len(s.first); {
	case s.scopes == maxScopes:
		return
	case n < 0:
		s.first[s.scopes] = d
	default:
		s.more = append(s.more[:n], d)
	}
	s.scopes++
}

// envelope scans from the Envelope's start tag to the first child of its Body.
func (s *envelopeScanner) envelope() (r scannedEnvelope) {
	const (
		outside = iota
		inHeader
		inBody
	)
	depth, where := 0, outside
	var actionAt int // where the text of an Action header begins, 0 if none is open
	for {
		t, ok := s.tag(depth)
		if !ok {
			return r
		}
		if t.end {
			depth--
			if actionAt > 0 && depth == 2 {
				r.action, actionAt = s.b[actionAt:t.at], 0
			}
			if depth == 1 && where == inBody {
				r.complete = true
			}
			if depth <= 1 {
				where = outside
			}
			if depth <= 0 || r.complete {
				return r
			}
			continue
		}
		name := t.name
		switch {
		case depth == 0:
			if r.version = name.version(); r.version == None {
				return r
			}
		case depth == 1 && name.is(r.version.Namespace(), "Header"):
			where = inHeader
		case depth == 1 && name.is(r.version.Namespace(), "Body"):
			where = inBody
		case depth == 2 && where == inHeader && string(name.local) == "Action" && isAddressing(name.space) && !t.empty:
			actionAt = s.at
		case depth == 2 && where == inBody:
			r.operation, r.complete = name, true
			r.fault = name.is(r.version.Namespace(), "Fault")
			return r
		}
		if t.empty {
			if depth == 1 && where == inBody {
				r.complete = true
				return r
			}
			if depth == 1 {
				where = outside
			}
			s.drop(depth)
			continue
		}
		depth++
	}
}

func isAddressing(ns []byte) bool {
	switch string(ns) {
	case xmlns.WSA, xmlns.WSA200408, xmlns.WSA200403:
		return true
	}
	return false
}

func (s *envelopeScanner) namespace(prefix []byte) []byte {
	for i := s.scopes - 1; i >= 0; i-- {
		if d := s.scope(i); bytes.Equal(d.prefix, prefix) {
			ns := d.ns
			if bytes.IndexByte(ns, '&') >= 0 {
				ns = []byte(unescape(string(ns)))
			}
			return ns
		}
	}
	return nil
}

// drop removes the declarations made at depth or deeper.
func (s *envelopeScanner) drop(depth int) {
	for s.scopes > 0 && s.scope(s.scopes-1).depth >= depth {
		s.scopes--
	}
}
