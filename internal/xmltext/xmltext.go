// Package xmltext cuts XML into tokens that together are exactly its bytes, with the line and
// column of each. It checks the syntax of tags and nothing else: no nesting, no names, no entities
// (XML 1.0, section 2). It reads any encoding in which markup is ASCII. A [Tokenizer] is not safe
// for concurrent use.
package xmltext

import (
	"bytes"
	"fmt"
	"io"
)

// Kind is the kind of a token.
type Kind uint8

const (
	Text    Kind = iota + 1 // character data and references, up to the next markup
	Start                   // <name attr="value">
	Empty                   // <name attr="value"/>
	End                     // </name>
	Comment                 // <!-- … -->
	Inst                    // <? … ?>, the XML declaration too
	CDATA                   // <![CDATA[ … ]]>
	Doctype                 // <!DOCTYPE … >, internal subset included
)

// Token is one token: src[From:To]. For tags, src[NameFrom:NameTo] is the name as written, prefix
// included, and TagEnd is the offset of the end of the tag: the white space, if any, before `>` or
// `/>`.
type Token struct {
	Kind             Kind
	From, To         int
	NameFrom, NameTo int
	TagEnd           int
}

// Attr is one attribute of a start or empty tag: src[From:To] is white space, name, `=`, quotes and
// value; src[ValueFrom:ValueTo] the value as written, between its quotes.
type Attr struct {
	From, NameFrom, NameTo, ValueFrom, ValueTo, To int
}

// Code is the kind of an [Error].
type Code uint8

const (
	// Truncated: the input ends inside a token.
	Truncated Code = iota + 1
	// Malformed: the input cannot be XML.
	Malformed
)

// Error says what is wrong, and where. At is an offset in bytes; Line and Column count from 1,
// columns in bytes.
type Error struct {
	Code         Code
	At           int
	Line, Column int
	What         string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d (offset %d): %s", e.Line, e.Column, e.At, e.What)
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Position returns line and column of an offset, both from 1, columns in bytes.
func Position(src []byte, at int) (line, column int) {
	before := src[:min(at, len(src))]
	return bytes.Count(before, []byte{'\n'}) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// Tokenizer returns the tokens of one document, first to last.
type Tokenizer struct {
	src   []byte
	at    int
	attrs []Attr
}

// New reads src, which must not change while the tokenizer is in use.
func New(src []byte) *Tokenizer { return &Tokenizer{src: src} }

// Reset makes the tokenizer read src from its start.
func (t *Tokenizer) Reset(src []byte) { t.src, t.at, t.attrs = src, 0, t.attrs[:0] }

// Attrs are the attributes of the token that [Tokenizer.Next] returned last; valid until the next
// call.
func (t *Tokenizer) Attrs() []Attr { return t.attrs }

// Next returns the next token, [io.EOF] at the end of the input, or an [Error]. After an error it
// returns the same error again.
func (t *Tokenizer) Next() (Token, error) {
	t.attrs = t.attrs[:0]
	if t.at >= len(t.src) {
		return Token{}, io.EOF
	}
	rest := t.src[t.at:]
	if rest[0] != '<' {
		n := bytes.IndexByte(rest, '<')
		if n < 0 {
			n = len(rest)
		}
		return t.give(Token{Kind: Text, From: t.at, To: t.at + n})
	}
	if len(rest) < 2 {
		return Token{}, t.fail(Truncated, t.at, "tag without a name")
	}
	switch rest[1] {
	case '/':
		return t.endTag()
	case '?':
		return t.until(Inst, 2, "?>", "processing instruction")
	case '!':
		return t.declaration(rest)
	}
	return t.startTag()
}

// EndOf passes over the end tag of an element of a name, if that is what comes next, without white
// space in it. Otherwise it reports false, and [Tokenizer.Next] goes on from where it was.
func (t *Tokenizer) EndOf(name []byte) bool {
	end := t.at + len("</") + len(name)
	if end >= len(t.src) || t.src[end] != '>' || t.src[t.at+1] != '/' || t.src[t.at] != '<' ||
		string(t.src[t.at+len("</"):end]) != string(name) {
		return false
	}
	t.at, t.attrs = end+1, t.attrs[:0]
	return true
}

func (t *Tokenizer) give(tok Token) (Token, error) {
	t.at = tok.To
	return tok, nil
}

func (t *Tokenizer) fail(code Code, at int, what string) error {
	line, column := Position(t.src, at)
	return &Error{Code: code, At: at, Line: line, Column: column, What: what}
}

func (t *Tokenizer) until(kind Kind, skip int, end, what string) (Token, error) {
	n := -1
	if t.at+skip <= len(t.src) {
		n = bytes.Index(t.src[t.at+skip:], []byte(end))
	}
	if n < 0 {
		return Token{}, t.fail(Truncated, t.at, what+" without its end "+end)
	}
	return t.give(Token{Kind: kind, From: t.at, To: t.at + skip + n + len(end)})
}

func (t *Tokenizer) declaration(rest []byte) (Token, error) {
	for _, d := range []struct {
		open, end, what string
		kind            Kind
	}{{"<!--", "-->", "comment", Comment}, {"<![CDATA[", "]]>", "CDATA section", CDATA}} {
		if bytes.HasPrefix(rest, []byte(d.open)) {
			return t.until(d.kind, len(d.open), d.end, d.what)
		}
		if len(rest) < len(d.open) && bytes.HasPrefix([]byte(d.open), rest) {
			return Token{}, t.fail(Truncated, t.at, d.what+" without its end "+d.end)
		}
	}
	if bytes.HasPrefix(rest, []byte("<!DOCTYPE")) {
		return t.doctype()
	}
	return Token{}, t.fail(Malformed, t.at, "<! begins no comment, CDATA section or DOCTYPE")
}

// doctype skips a document type declaration: quotes and comments hide brackets.
func (t *Tokenizer) doctype() (Token, error) {
	depth := 0
	for i := t.at + 2; i < len(t.src); i++ {
		switch c := t.src[i]; c {
		case '"', '\'':
			n := bytes.IndexByte(t.src[i+1:], c)
			if n < 0 {
				return Token{}, t.fail(Truncated, i, "quote without its end")
			}
			i += n + 1
		case '<':
			if bytes.HasPrefix(t.src[i:], []byte("<!--")) {
				n := bytes.Index(t.src[i:], []byte("-->"))
				if n < 0 {
					return Token{}, t.fail(Truncated, i, "comment without its end -->")
				}
				i += n + 2
				continue
			}
			depth++
		case '>':
			if depth == 0 {
				return t.give(Token{Kind: Doctype, From: t.at, To: i + 1})
			}
			depth--
		}
	}
	return Token{}, t.fail(Truncated, t.at, "DOCTYPE without its end >")
}

// IsSpace reports whether c is white space in XML.
func IsSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// nameEnds are the bytes that end a name inside a tag.
var nameEnds = [256]bool{' ': true, '\t': true, '\r': true, '\n': true, '>': true, '/': true, '=': true, '<': true,
	'"': true, '\'': true}

// IsNameEnd reports whether c ends a name inside a tag.
func IsNameEnd(c byte) bool { return nameEnds[c] }

func (t *Tokenizer) name(i int) (end int, err error) {
	for end = i; end < len(t.src) && !IsNameEnd(t.src[end]); end++ {
	}
	if end == len(t.src) {
		return end, t.fail(Truncated, i, "tag without its end >")
	}
	if end == i {
		return end, t.fail(Malformed, i, "a name is missing")
	}
	return end, nil
}

func (t *Tokenizer) space(i int) int {
	for i < len(t.src) && IsSpace(t.src[i]) {
		i++
	}
	return i
}

func (t *Tokenizer) endTag() (Token, error) {
	tok := Token{Kind: End, From: t.at, NameFrom: t.at + 2}
	end, err := t.name(tok.NameFrom)
	if err != nil {
		return Token{}, err
	}
	tok.NameTo, tok.TagEnd = end, end
	end = t.space(end)
	if end == len(t.src) {
		return Token{}, t.fail(Truncated, t.at, "end tag without >")
	}
	if t.src[end] != '>' {
		return Token{}, t.fail(Malformed, end, "end tag with more than a name")
	}
	tok.To = end + 1
	return t.give(tok)
}

func (t *Tokenizer) startTag() (Token, error) {
	tok := Token{Kind: Start, From: t.at, NameFrom: t.at + 1}
	end, err := t.name(tok.NameFrom)
	if err != nil {
		return Token{}, err
	}
	tok.NameTo = end
	for {
		i := t.space(end)
		if i == len(t.src) {
			return Token{}, t.fail(Truncated, t.at, "tag without its end >")
		}
		switch t.src[i] {
		case '>':
			tok.TagEnd, tok.To = end, i+1
			return t.give(tok)
		case '/':
			if i+1 == len(t.src) {
				return Token{}, t.fail(Truncated, t.at, "tag without its end >")
			}
			if t.src[i+1] != '>' {
				return Token{}, t.fail(Malformed, i, "/ inside a tag")
			}
			tok.Kind, tok.TagEnd, tok.To = Empty, end, i+2
			return t.give(tok)
		}
		if i == end {
			return Token{}, t.fail(Malformed, i, "no white space before an attribute")
		}
		if end, err = t.attr(end, i); err != nil {
			return Token{}, err
		}
	}
}

func (t *Tokenizer) attr(from, nameFrom int) (end int, err error) {
	a := Attr{From: from, NameFrom: nameFrom}
	if a.NameTo, err = t.name(nameFrom); err != nil {
		return 0, err
	}
	i := t.space(a.NameTo)
	if i < len(t.src) && t.src[i] != '=' {
		return 0, t.fail(Malformed, i, "attribute without =")
	}
	if i = t.space(i + 1); i >= len(t.src) {
		return 0, t.fail(Truncated, from, "tag without its end >")
	}
	quote := t.src[i]
	if quote != '"' && quote != '\'' {
		return 0, t.fail(Malformed, i, "attribute value without quotes")
	}
	n := bytes.IndexByte(t.src[i+1:], quote)
	if n < 0 {
		return 0, t.fail(Truncated, i, "attribute value without its closing quote")
	}
	a.ValueFrom, a.ValueTo = i+1, i+1+n
	if bad := bytes.IndexByte(t.src[a.ValueFrom:a.ValueTo], '<'); bad >= 0 {
		return 0, t.fail(Malformed, a.ValueFrom+bad, "< inside an attribute value")
	}
	a.To = a.ValueTo + 1
	t.attrs = append(t.attrs, a)
	return a.To, nil
}
