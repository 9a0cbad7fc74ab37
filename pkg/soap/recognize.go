package soap

import (
	"bytes"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// MaxRecognize is how much of a message [Recognize] reads, in bytes. Headers with security tokens
// run to some tens of KiB; searching further is not worth it.
const MaxRecognize = 64 << 10

// maxCandidates bounds the tags named Envelope that are examined, so that hostile bytes do not make
// the search quadratic.
const maxCandidates = 16

// maxScopes bounds the namespace declarations kept during recognition.
const maxScopes = 256

// Recognized is what the beginning of a message shows. Fields that the bytes seen so far do not
// show are empty.
type Recognized struct {
	// Version is None when no envelope was found.
	Version Version
	// Operation is the first child of Body. Its local part is empty when it was not reached, or the
	// Body is empty.
	Operation Name
	// Action is the text of the WS-Addressing Action header, if it came before the operation.
	Action string
	// Fault: the operation is the Fault of this version.
	Fault bool
	// Complete: the Body was reached and its first child, or its end, was seen; more bytes would
	// show nothing new.
	Complete bool
}

// Recognize examines the first bytes of a message, at most [MaxRecognize]. It accepts envelopes in
// UTF-8 and all encodings that agree with ASCII, in UTF-16, and after anything that precedes an
// envelope (MIME headers of a first part). It never fails, keeps no reference to prefix, and costs
// one pass without a parser.
func Recognize(prefix []byte) Recognized {
	var s envelopeScanner
	e := s.find(prefix)
	r := Recognized{Version: e.version, Fault: e.fault, Complete: e.complete,
		Operation: Name{string(e.operation.space), string(e.operation.local)}}
	if e.action != nil {
		r.Action = actionText(e.action)
	}
	return r
}

// OperationName is the local part of Recognized.Operation: a part of prefix, unless that is in
// UTF-16. It allocates nothing, for callers that look at every message.
func OperationName(prefix []byte) []byte {
	var s envelopeScanner
	return s.find(prefix).operation.local
}

// IsFault is Recognized.Fault. It allocates nothing, for callers that look at every message.
func IsFault(prefix []byte) bool {
	var s envelopeScanner
	return s.find(prefix).fault
}

// maxFaultCode is the longest code of a fault that is found, in bytes.
const maxFaultCode = 64

// FaultCodeIn returns the code of a fault, without its prefix, from the first bytes of the message:
// the faultcode of SOAP 1.1, or the Value of SOAP 1.2. It is a part of prefix, unless that is in
// UTF-16; nil if it is not there or too long.
func FaultCodeIn(prefix []byte) []byte {
	b := narrow(prefix[:min(len(prefix), MaxRecognize)])
	for _, name := range []string{"faultcode", "Value"} {
		_, behind, found := bytes.Cut(b, []byte(name))
		if !found {
			continue
		}
		_, behind, _ = bytes.Cut(behind, []byte{'>'})
		code, _, whole := bytes.Cut(behind, []byte{'<'})
		_, local := splitName(bytes.TrimSpace(code))
		if whole && len(local) <= maxFaultCode {
			return local
		}
	}
	return nil
}

// find scans the first envelope in a message.
func (s *envelopeScanner) find(prefix []byte) (none scannedEnvelope) {
	s.b = narrow(prefix[:min(len(prefix), MaxRecognize)])
	from := 0
	for range maxCandidates {
		at := findEnvelope(s.b, from)
		if at < 0 {
			break
		}
		s.at, s.scopes = at, 0
		if e := s.envelope(); e.version != None {
			return e
		}
		from = at + 1
	}
	return none
}

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

// narrow converts UTF-16 for the scanner: names and namespaces of SOAP are ASCII, other characters
// become '?'.
func narrow(b []byte) []byte {
	var hi int // offset of the high byte in each pair
	switch {
	case len(b) < 4:
		return b
	case b[0] == 0xFE && b[1] == 0xFF, b[0] == 0 && b[1] == '<':
		hi = 0
	case b[0] == 0xFF && b[1] == 0xFE, b[0] == '<' && b[1] == 0:
		hi = 1
	default:
		return b
	}
	out := make([]byte, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		if c := b[i+1-hi]; b[i+hi] == 0 && c < 0x80 {
			out = append(out, c)
		} else {
			out = append(out, '?')
		}
	}
	return out
}

// findEnvelope returns the offset of the next '<' that begins a tag with the local name Envelope;
// -1 if there is none. Comments before it are skipped when the text is XML from its start.
func findEnvelope(b []byte, from int) int {
	comments := true
	for i := from; i < len(b); {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			return -1
		}
		i += n
		if comments && bytes.HasPrefix(b[i:], []byte("<!--")) {
			if end := bytes.Index(b[i:], []byte("-->")); end > 0 {
				i += end + 3
				continue
			}
			comments = false
		}
		j := i + 1
		for j < len(b) && isNameByte(b[j]) {
			j++
		}
		if j < len(b) {
			if _, local := splitName(b[i+1 : j]); string(local) == "Envelope" {
				return i
			}
		}
		i++
	}
	return -1
}

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

var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'")

func unescape(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return entities.Replace(s)
}

func actionText(b []byte) string {
	text := strings.TrimSpace(string(b))
	if inner, ok := strings.CutPrefix(text, "<![CDATA["); ok {
		text, _ = strings.CutSuffix(inner, "]]>")
		return text
	}
	if strings.Contains(text, "<") {
		return ""
	}
	return unescape(text)
}
