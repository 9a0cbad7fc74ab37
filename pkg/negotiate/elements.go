package negotiate

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// documentWriter collects the children of an offer, an answer or a context document.
type documentWriter struct {
	ns       string
	children []soap.Element
	err      error
}

func (w *documentWriter) name(local string) soap.Name { return soap.Name{Space: w.ns, Local: local} }

func (w *documentWriter) texts(local string, values ...string) {
	for _, v := range values {
		if err := CheckText(v); err != nil && w.err == nil {
			w.err = fmt.Errorf("%s: %w", local, err)
		}
		w.children = append(w.children, soap.Element{Name: w.name(local), Text: v})
	}
}

func (w *documentWriter) lifetime(d time.Duration) {
	if d > 0 {
		w.texts("Lifetime", strconv.FormatInt(int64(max(d/time.Second, 1)), 10))
	}
}

// limits writes the limits of a hello, in the order of hello.
func (w *documentWriter) limits(l *streamer.PeerLimits) {
	list := make([]string, 0, 7)
	for _, v := range eachLimit(l) {
		list = append(list, strconv.FormatUint(*v, 10))
	}
	w.texts("Limits", strings.Join(list, " "))
}

func eachLimit(l *streamer.PeerLimits) []*uint64 {
	return []*uint64{&l.MaxFragment, &l.MaxMessage, &l.MaxShapes, &l.MaxShapeBytes, &l.MaxExchanges, &l.Window,
		&l.MaxHeld}
}

func (w *documentWriter) heads(request, reply []soap.Field) {
	for _, h := range []struct {
		local  string
		fields []soap.Field
	}{{"RequestHead", request}, {"ReplyHead", reply}} {
		if h.fields == nil {
			continue
		}
		el := soap.Element{Name: w.name(h.local)}
		for _, f := range h.fields {
			el.Children = append(el.Children,
				soap.Element{Name: w.name("Field"), Attrs: []soap.Attr{{Name: "name", Value: f.Name}}, Text: f.Value})
		}
		w.children = append(w.children, el)
	}
}

// shapes writes fingerprints in base64url: a full offer with hexadecimal ones would not fit
// [MaxOffer].
func (w *documentWriter) shapes(fps [][32]byte) {
	if len(fps) == 0 {
		return
	}
	if len(fps) > MaxShapes && w.err == nil {
		w.err = fmt.Errorf("%d fingerprints, at most %d are allowed", len(fps), MaxShapes)
	}
	list := make([]string, len(fps))
	for i, fp := range fps {
		list[i] = base64.RawURLEncoding.EncodeToString(fp[:])
	}
	w.children = append(w.children, soap.Element{Name: w.name("Shapes"), Text: strings.Join(list, " ")})
}

func (w *documentWriter) element(local string) soap.Element {
	return soap.Element{Name: w.name(local), Children: w.children}
}

func (w *documentWriter) message(v soap.Version, local string) ([]byte, error) {
	if w.err != nil {
		return nil, AsMalformed(w.err)
	}
	data, err := soap.Build(&soap.Envelope{Version: v, Body: []soap.Element{w.element(local)}})
	if err != nil {
		return nil, AsMalformed(err)
	}
	if len(data) > MaxOffer {
		return nil, AsMalformed(fmt.Errorf("message of %d bytes, at most %d are allowed", len(data), MaxOffer))
	}
	return data, nil
}

// documentReader reads the children of an offer, an answer or a context document, and remembers the
// first failure.
type documentReader struct {
	el    *soap.Element
	asked map[string]bool // local names that were searched for
	err   error
}

// open parses a message and returns its Body child, which must have the name and be the only one.
func open(data []byte, name soap.Name) (*documentReader, soap.Version, error) {
	e, err := soap.Parse(data, soap.Limits{MaxBytes: MaxOffer, MaxDepth: 16, MaxElements: 512})
	if err != nil {
		return nil, soap.None, AsMalformed(err)
	}
	if f, ok := e.Fault(); ok {
		return nil, e.Version, AsMalformed(readFault(f))
	}
	if f, ok := e.Mandatory(); ok {
		return nil, e.Version, &NotUnderstood{f}
	}
	if len(e.Body) != 1 || e.Body[0].Name != name {
		return nil, e.Version, AsMalformed(fmt.Errorf("no %s in the Body", name))
	}
	return &documentReader{el: &e.Body[0], asked: map[string]bool{}}, e.Version, nil
}

// NotUnderstood is the one refusal that has a fault code of its own.
type NotUnderstood struct{ Fault soap.Fault }

func (e *NotUnderstood) Error() string { return e.Fault.Reason }

// Is makes it a malformed message for callers.
func (e *NotUnderstood) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == Malformed }

func (r *documentReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// all returns the children with that name; more than max are a failure.
func (r *documentReader) all(local string, max int) []*soap.Element {
	var found []*soap.Element
	r.asked[local] = true
	for i := range r.el.Children {
		if c := &r.el.Children[i]; c.Name.Space == r.el.Name.Space && c.Name.Local == local {
			found = append(found, c)
		}
	}
	if len(found) > max {
		r.fail("%d elements %s, at most %d are allowed", len(found), local, max)
		return nil
	}
	return found
}

func (r *documentReader) texts(local string, max int) []string {
	var values []string
	for _, c := range r.all(local, max) {
		v := strings.TrimSpace(c.Text)
		if err := CheckText(v); err != nil {
			r.fail("%s: %w", local, err)
		}
		if len(c.Children) > 0 {
			r.fail("%s has child elements", local)
		}
		values = append(values, v)
	}
	return values
}

// optional returns the value of an element that may be there once, "" when it is not.
func (r *documentReader) optional(local string) string {
	if v := r.texts(local, 1); len(v) == 1 {
		return v[0]
	}
	return ""
}

// one returns the value of an element that must be there.
func (r *documentReader) one(local string) string {
	v := r.optional(local)
	if v == "" {
		r.fail("%s is missing", local)
	}
	return v
}

func (r *documentReader) hex(local string, size int) []byte {
	v := r.one(local)
	b, err := hex.DecodeString(v)
	if err != nil || len(b) != size {
		r.fail("%s is not %d hexadecimal digits", local, 2*size)
		return nil
	}
	return b
}

func (r *documentReader) session() SessionID {
	id, err := ParseSessionID(r.one("Session"))
	if err != nil {
		r.fail("Session: %w", err)
	}
	return id
}

func (r *documentReader) lifetime() time.Duration {
	v := r.optional("Lifetime")
	if v == "" {
		return 0
	}
	// Ten years in seconds: far above what is granted, far below what overflows a Duration.
	const most = 10 * 366 * 24 * 3600
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n == 0 || n > most {
		r.fail("Lifetime %.20q is not between 1 and %d seconds", v, most)
		return 0
	}
	return time.Duration(n) * time.Second
}

// limits reads what a writer's limits wrote; nil if there are none.
func (r *documentReader) limits() *streamer.PeerLimits {
	text := r.optional("Limits")
	if text == "" {
		return nil
	}
	l := new(streamer.PeerLimits)
	words, all := strings.Fields(text), eachLimit(l)
	if len(words) != len(all) {
		r.fail("Limits has %d numbers, not %d", len(words), len(all))
		return nil
	}
	for i, v := range all {
		n, err := strconv.ParseUint(words[i], 10, 63)
		if err != nil {
			r.fail("Limits: %w", err)
		}
		*v = n
	}
	return l
}

// number reads an element that must be there.
func (r *documentReader) number(local string) uint64 {
	n, err := strconv.ParseUint(r.one(local), 10, 63)
	if err != nil {
		r.fail("%s: %w", local, err)
	}
	return n
}

func (r *documentReader) heads() (request, reply []soap.Field) {
	return r.head("RequestHead"), r.head("ReplyHead")
}

func (r *documentReader) head(local string) []soap.Field {
	found := r.all(local, 1)
	if len(found) == 0 {
		return nil
	}
	fields := []soap.Field{}
	for i := range found[0].Children {
		c := &found[0].Children[i]
		if c.Name != (soap.Name{Space: r.el.Name.Space, Local: "Field"}) {
			continue
		}
		f := soap.Field{Name: c.Attr("name"), Value: strings.TrimSpace(c.Text)}
		if CheckText(f.Value) != nil || CheckText(f.Name) != nil || f.Name == "" {
			r.fail("%s has a bad field", local)
		}
		fields = append(fields, f)
	}
	if len(fields) > maxChoices {
		r.fail("%s has %d fields, at most %d are allowed", local, len(fields), maxChoices)
	}
	return fields
}

func (r *documentReader) shapes() [][32]byte {
	var fps [][32]byte
	for _, c := range r.all("Shapes", 1) {
		for word := range strings.FieldsSeq(c.Text) {
			if len(fps) == MaxShapes {
				r.fail("more than %d fingerprints", MaxShapes)
				return nil
			}
			var fp [32]byte
			if base64.RawURLEncoding.DecodedLen(len(word)) != len(fp) {
				r.fail("%.60q is no fingerprint", word)
				return nil
			}
			if _, err := base64.RawURLEncoding.Strict().Decode(fp[:], []byte(word)); err != nil {
				r.fail("%.60q is no fingerprint", word)
				return nil
			}
			fps = append(fps, fp)
		}
	}
	return fps
}

// CheckText refuses values of simple elements that cannot safely be written, logged and compared.
func CheckText(s string) error {
	if len(s) > maxValue {
		return fmt.Errorf("value of %d bytes, at most %d are allowed", len(s), maxValue)
	}
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7F {
			return fmt.Errorf("byte %#02x in %.60q", s[i], s)
		}
	}
	return nil
}
