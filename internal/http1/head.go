// Package http1 reads and writes HTTP/1.x heads and bodies as they are on the wire (RFC 9112) and
// loses no byte: field names keep their case, fields their order and repeats, lines their ends and
// folds, chunks their extensions and trailers. It owns no socket and no clock.
//
// [ParseHead] finds a head, [RequestFraming] and [ReplyFraming] return where the body after it
// ends, [Body] takes the body's bytes as they arrive and returns the entity. Ambiguities that
// enable request smuggling are reported ([Framing.Doubts]) or rejected ([Conflict]). One value must
// not be used concurrently, except that values may be read concurrently.
package http1

import (
	"bytes"
	"strings"
)

// FieldLine is one field of a head; its slices alias the head's bytes. Value has no white space
// around it; a folded value (obs-fold) still has its line ends, see [FieldLine.Unfolded]. Raw is
// the whole line or lines, line end included.
type FieldLine struct {
	Name, Value, Raw []byte
}

// Is reports whether the field has this name, case ignored.
func (f FieldLine) Is(name string) bool { return equalFold(f.Name, name) }

// Folded reports whether the value spans lines (RFC 9112, section 5.2).
func (f FieldLine) Folded() bool { return bytes.IndexByte(f.Value, '\n') >= 0 }

// Unfolded is the value with each fold replaced by one space. Without a fold it is Value itself.
func (f FieldLine) Unfolded() []byte {
	if !f.Folded() {
		return f.Value
	}
	lines := bytes.Split(f.Value, []byte{'\n'})
	for i := range lines {
		lines[i] = trim(bytes.TrimSuffix(lines[i], []byte{'\r'}))
	}
	return bytes.Join(lines, []byte{' '})
}

// Head is a parsed head. Octets is everything from the first byte (empty lines before the start
// line included) to the end of the empty line; all else aliases it.
type Head struct {
	Octets []byte

	start  []byte // start line without its end
	before int    // bytes before the start line
	parts  [3][]byte
	reply  bool
	fields []FieldLine
}

// ParseHead parses the head at the front of b and returns its length in bytes. A head above limit
// bytes (0: [DefaultHeadLimit]) is [TooLarge]; if b ends before the empty line, the error is
// [ErrIncomplete]. The head aliases b.
func ParseHead(b []byte, limit int) (Head, int, error) {
	if limit <= 0 {
		limit = DefaultHeadLimit
	}
	in := b[:min(len(b), limit)]
	short := func(at int) (Head, int, error) {
		if len(b) >= limit {
			return Head{}, 0, &Error{Code: TooLarge, At: int64(at), What: "head"}
		}
		return Head{}, 0, &Error{Code: Incomplete, At: int64(at), What: "head"}
	}
	var h Head
	for { // RFC 9112, section 2.2: empty lines before a start line are ignored
		line, n := cutLine(in[h.before:])
		if n == 0 {
			return short(len(in))
		}
		if len(line) > 0 {
			break
		}
		h.before += n
	}
	at := h.before
	line, n := cutLine(in[at:])
	if !h.parseStart(line) {
		return Head{}, 0, &Error{Code: Malformed, At: int64(at), What: "start line"}
	}
	at += n
	for {
		line, n := cutLine(in[at:])
		switch {
		case n == 0:
			return short(at)
		case len(line) == 0:
			h.Octets = b[: at+n : at+n]
			return h, at + n, nil
		case line[0] == ' ' || line[0] == '\t':
			if len(h.fields) == 0 {
				return Head{}, 0, &Error{Code: Malformed, At: int64(at), What: "fold before the first field"}
			}
			h.fold(in, at, n)
		default:
			colon := bytes.IndexByte(line, ':')
			if colon <= 0 {
				return Head{}, 0, &Error{Code: Malformed, At: int64(at), What: "field line"}
			}
			if len(h.fields) >= MaxFields {
				return Head{}, 0, &Error{Code: TooLarge, At: int64(at), What: "number of fields"}
			}
			if h.fields == nil {
				h.fields = make([]FieldLine, 0, fewFields)
			}
			h.fields = append(h.fields, FieldLine{
				Name: trimEnd(line[:colon]), Value: trim(line[colon+1:]), Raw: in[at : at+n : at+n],
			})
		}
		at += n
	}
}

// Clone is the head in memory of its own.
func (h *Head) Clone() Head {
	c, _, _ := ParseHead(bytes.Clone(h.Octets), len(h.Octets))
	return c
}

// fold widens the last field by the line of n bytes at offset at.
func (h *Head) fold(in []byte, at, n int) {
	f := &h.fields[len(h.fields)-1]
	f.Raw = in[at-len(f.Raw) : at+n : at+n]
	f.Value = bytes.Trim(f.Raw[bytes.IndexByte(f.Raw, ':')+1:], " \t\r\n")
}

// cutLine returns the line at the front of b without its end (CR LF or LF), and its length with it;
// 0 if there is no line end.
func cutLine(b []byte) ([]byte, int) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, 0
	}
	return bytes.TrimSuffix(b[:i], []byte{'\r'}), i + 1
}

func (h *Head) parseStart(line []byte) bool {
	h.start = line
	if IsStatusLine(line) {
		h.reply = true
		version, rest, _ := bytes.Cut(line, []byte{' '})
		rest = bytes.TrimLeft(rest, " ")
		status, reason := rest[:3], rest[3:]
		h.parts = [3][]byte{version, status, bytes.TrimPrefix(reason, []byte{' '})}
		return true
	}
	if !IsRequestLine(line) {
		return false
	}
	method := line[:bytes.IndexAny(line, " \t")]
	last := bytes.LastIndexAny(bytes.TrimRight(line, " \t"), " \t")
	h.parts = [3][]byte{method, trim(line[len(method):last]), bytes.TrimRight(line[last+1:], " \t")}
	return true
}

// IsReply reports whether the head begins with a status line.
func (h *Head) IsReply() bool { return h.reply }

// StartLine is the start line as received, without its line end.
func (h *Head) StartLine() []byte { return h.start }

// Before is what precedes the start line: empty lines.
func (h *Head) Before() []byte { return h.Octets[:h.before] }

// Method, Target and Version are the parts of a request line; Method and Target are nil for a
// reply.
func (h *Head) Method() []byte {
	if h.reply {
		return nil
	}
	return h.parts[0]
}

// Target is the request target as received; nil for a reply.
func (h *Head) Target() []byte {
	if h.reply {
		return nil
	}
	return h.parts[1]
}

// Version is the version of either kind, such as HTTP/1.1.
func (h *Head) Version() []byte {
	if h.reply {
		return h.parts[0]
	}
	return h.parts[2]
}

// Status is the status code of a reply; 0 for a request.
func (h *Head) Status() int {
	if !h.reply {
		return 0
	}
	s := h.parts[1]
	return int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
}

// Fields are all fields in their order. The caller must not change the slice.
func (h *Head) Fields() []FieldLine { return h.fields }

// Get returns the unfolded value of the first field of this name, case ignored, and whether there
// is one.
func (h *Head) Get(name string) ([]byte, bool) {
	for _, f := range h.fields {
		if f.Is(name) {
			return f.Unfolded(), true
		}
	}
	return nil, false
}

// All are the unfolded values of all fields of this name, in their order.
func (h *Head) All(name string) [][]byte {
	var vs [][]byte
	for _, f := range h.fields {
		if f.Is(name) {
			vs = append(vs, f.Unfolded())
		}
	}
	return vs
}

// Tokens are the members of the comma-separated list that all fields of this name make together, in
// lower case, without parameters and empty members.
func (h *Head) Tokens(name string) []string {
	var ts []string
	for _, v := range h.All(name) {
		for t := range strings.SplitSeq(string(v), ",") {
			t, _, _ = strings.Cut(t, ";")
			if t = strings.ToLower(strings.Trim(t, " \t")); t != "" {
				ts = append(ts, t)
			}
		}
	}
	return ts
}

// trim removes spaces and tabs around b.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	return trimEnd(b)
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func equalFold(b []byte, s string) bool {
	return len(b) == len(s) && strings.EqualFold(string(b), s)
}
