package values

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xsd"
)

// Kind is what a [JSON] is.
type Kind uint8

// Kinds of values in JSON.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	// Loose is text of which the description decides what it is, such as an argument of a command.
	Loose
)

// named says what a kind is in errors.
var named = map[Kind]string{
	Null: "null", Bool: "a boolean", Number: "a number", String: "a string", Array: "an array", Object: "an object",
	Loose: "a text",
}

// JSON is a value in JSON, whose members have an order, with its place in the text.
type JSON struct {
	Kind Kind
	// Text is that of a boolean, a number (as it is written), a string, or what is loose.
	Text    string
	Items   []*JSON  // of an array
	Members []Member // of an object, each name once
	Place   xsd.Position
}

// Member is one of an object.
type Member struct {
	Name  string
	Value *JSON
}

// maxNesting bounds the nesting of arrays and objects, like that of elements.
const maxNesting = 256

// ParseJSON reads one value. Errors are [*xsd.Problem], with location, line and column.
func ParseJSON(location string, text []byte) (*JSON, error) {
	var only *JSON
	for v, err := range ParseJSONValues(location, bytes.NewReader(text), len(text)+1) {
		if err != nil {
			return nil, err
		}
		if only != nil {
			return nil, &xsd.Problem{Place: v.Place, What: "no JSON: more than one value"}
		}
		only = v
	}
	if only == nil {
		return nil, &xsd.Problem{Place: xsd.Position{Location: location, Line: 1, Column: 1}, What: tooEarly}
	}
	return only, nil
}

// ParseJSONValues yields the values that stand one behind the other in a text, each as soon as it
// is read, of at most so many bytes each. Errors are those of [ParseJSON], or of in; it ends with
// the first.
func ParseJSONValues(location string, in io.Reader, longest int) iter.Seq2[*JSON, error] {
	return func(yield func(*JSON, error) bool) {
		text := bufio.NewReader(in)
		if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
			_, _ = text.Discard(len(mark))
		}
		p := &jsonParser{in: text, here: xsd.Position{Location: location, Line: 1, Column: 1}}
		p.dec = json.NewDecoder(p)
		p.dec.UseNumber()
		for {
			p.left = longest
			t, err := p.next()
			if errors.Is(err, io.EOF) {
				return
			}
			var v *JSON
			if err == nil {
				v, err = p.value(t, 0)
			}
			if err != nil {
				yield(nil, p.wrong(err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// tooEarly is what is wrong with a text that is cut.
const tooEarly = "no JSON: it ends too early"

// byteOrderMark is that of UTF-8, which some editors put before a text.
const byteOrderMark = "\ufeff"

type jsonParser struct {
	in   io.Reader
	left int // bytes that the value may still have
	dec  *json.Decoder
	// ahead is what was read and is not counted: at is how much is, and here is its end.
	ahead []byte
	at    int64
	here  xsd.Position
	place xsd.Position // of the last token
}

// readError is an error of what JSON is read from.
type readError struct{ error }

// Read implements [io.Reader], for the decoder.
func (p *jsonParser) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errors.New("a value that is too long")
	}
	n, err := p.in.Read(b[:min(len(b), p.left)])
	p.left -= n
	p.ahead = append(p.ahead, b[:n]...)
	if err != nil && !errors.Is(err, io.EOF) {
		err = readError{err}
	}
	return n, err
}

// next returns a token, and notes its place.
func (p *jsonParser) next() (json.Token, error) {
	p.forward(int(p.dec.InputOffset() - p.at))
	t, err := p.dec.Token()
	blank := 0
	for blank < len(p.ahead) && strings.IndexByte(" \t\r\n,:", p.ahead[blank]) >= 0 {
		blank++
	}
	p.forward(blank)
	p.place = p.here
	if text, ok := t.(string); ok && strings.ContainsRune(text, utf8.RuneError) {
		return t, wholeString(p.ahead[:p.dec.InputOffset()-p.at])
	}
	return t, err
}

// wholeString returns why a string in JSON stands for no characters, where the decoder takes U+FFFD
// for them.
func wholeString(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("a string that is not in UTF-8")
	}
	for at := bytes.Index(raw, []byte(`\`)); at >= 0 && at < len(raw); at++ {
		if raw[at] != '\\' {
			continue
		}
		if at++; raw[at] != 'u' {
			continue
		}
		first := escapedUnit(raw[at-1:])
		at += 4
		if !utf16.IsSurrogate(first) {
			continue
		}
		if utf16.DecodeRune(first, escapedUnit(raw[at+1:])) == utf8.RuneError {
			return fmt.Errorf("a string with half a character, \\u%04x", first)
		}
		at += 6
	}
	return nil
}

// escapedUnit is the unit of UTF-16 that a text begins with as an escape; 0: it does not.
func escapedUnit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// forward counts n bytes.
func (p *jsonParser) forward(n int) {
	for _, c := range p.ahead[:n] {
		switch {
		case c == '\n':
			p.here.Line, p.here.Column = p.here.Line+1, 1
		case c&0xC0 != 0x80: // the first byte of a character
			p.here.Column++
		}
	}
	p.ahead, p.at = p.ahead[n:], p.at+int64(n)
}

// wrong places an error of the decoder.
func (p *jsonParser) wrong(err error) error {
	var done *xsd.Problem
	var torn readError
	switch {
	case errors.As(err, &torn):
		return fmt.Errorf("%s: %w", p.here.Location, torn.error)
	case errors.As(err, &done):
		return done
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.forward(len(p.ahead))
		return &xsd.Problem{Place: p.here, What: tooEarly}
	}
	return &xsd.Problem{Place: p.place, What: "no JSON: " + err.Error()}
}

func (p *jsonParser) value(t json.Token, depth int) (*JSON, error) {
	v := &JSON{Place: p.place}
	switch t := t.(type) {
	case nil:
	case bool:
		v.Kind, v.Text = Bool, fmt.Sprint(t)
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case string:
		v.Kind, v.Text = String, t
	case json.Delim:
		if depth == maxNesting {
			return nil, fmt.Errorf("nested deeper than %d", maxNesting)
		}
		if t == '[' {
			v.Kind = Array
			return v, p.items(v, depth)
		}
		v.Kind = Object
		return v, p.members(v, depth)
	}
	return v, nil
}

func (p *jsonParser) items(v *JSON, depth int) error {
	for {
		t, err := p.next()
		if err != nil || t == json.Delim(']') {
			return err
		}
		item, err := p.value(t, depth+1)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
}

func (p *jsonParser) members(v *JSON, depth int) error {
	met := map[string]bool{}
	for {
		t, err := p.next()
		if err != nil || t == json.Delim('}') {
			return err
		}
		name, _ := t.(string)
		if met[name] {
			return fmt.Errorf("the name %q is there twice", name)
		}
		met[name] = true
		if t, err = p.next(); err != nil {
			return err
		}
		value, err := p.value(t, depth+1)
		if err != nil {
			return err
		}
		v.Members = append(v.Members, Member{name, value})
	}
}

// Get is the member of a name; nil: there is none, or v is no object.
func (v *JSON) Get(name string) *JSON {
	if v == nil {
		return nil
	}
	if i := slices.IndexFunc(v.Members, func(m Member) bool { return m.Name == name }); i >= 0 {
		return v.Members[i].Value
	}
	return nil
}

func (v *JSON) set(name string, value *JSON) { v.Members = append(v.Members, Member{name, value}) }

// MarshalJSON implements [json.Marshaler].
func (v *JSON) MarshalJSON() ([]byte, error) { return v.appendTo(nil) }

// Indented is the value in lines, two blanks deeper for each level.
func (v *JSON) Indented() (string, error) {
	text, err := v.appendTo(nil)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", "  ")
	return b.String(), err
}

func (v *JSON) appendTo(b []byte) (_ []byte, err error) {
	switch v.Kind {
	case Null:
		return append(b, "null"...), nil
	case Bool, Number:
		return append(b, v.Text...), nil
	case String, Loose:
		return appendString(b, v.Text)
	case Array:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = item.appendTo(b); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case Object:
	}
	b = append(b, '{')
	for i, m := range v.Members {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendString(b, m.Name); err != nil {
			return nil, err
		}
		if b, err = m.Value.appendTo(append(b, ':')); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendString writes a string without the escapes that are for HTML.
func appendString(b []byte, text string) ([]byte, error) {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return append(b, bytes.TrimSuffix(w.Bytes(), []byte("\n"))...), err
}
