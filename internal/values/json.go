package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
func ParseJSON(location string, text []byte) (*JSON, error) { return ParseJSONLine(location, 1, text) }

// ParseJSONLine is [ParseJSON] for a value that begins at a line of a text.
func ParseJSONLine(location string, line int, text []byte) (*JSON, error) {
	p := &jsonParser{location: location, text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: line, column: 1}
	p.dec.UseNumber()
	t, err := p.next()
	if err != nil {
		return nil, p.wrong(err)
	}
	v, err := p.value(t, 0)
	if err != nil {
		return nil, p.wrong(err)
	}
	if _, err := p.next(); !errors.Is(err, io.EOF) {
		return nil, p.wrong(errors.New("more than one value"))
	}
	return v, nil
}

type jsonParser struct {
	location string
	text     []byte
	dec      *json.Decoder
	// at is how far line and column are counted.
	at, line, column int
	place            xsd.Position // of the last token
}

// next returns a token, and notes its place.
func (p *jsonParser) next() (json.Token, error) {
	p.forward(int(p.dec.InputOffset()))
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[p.at]) >= 0 {
		p.forward(p.at + 1)
	}
	p.place = xsd.Position{Location: p.location, Line: p.line, Column: p.column}
	return p.dec.Token()
}

func (p *jsonParser) forward(to int) {
	for ; p.at < min(to, len(p.text)); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\n':
			p.line, p.column = p.line+1, 1
		case c&0xC0 != 0x80: // the first byte of a character
			p.column++
		}
	}
}

// wrong places an error of the decoder.
func (p *jsonParser) wrong(err error) error {
	var done *xsd.Problem
	switch {
	case errors.As(err, &done):
		return done
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.forward(len(p.text))
		p.place.Line, p.place.Column = p.line, p.column
		err = errors.New("it ends too early")
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
