package filter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of expressions.
const (
	maxLength = 10_000
	maxDepth  = 100
)

// Parse parses an expression: comparisons of fields (see [Fields]) with values, joined by &&, ||
// and !, with parentheses; and, or and not stand for these, too. Operators are ==, !=, <, <=, > and
// >=, and for text ~ and !~ with a regular expression. Values are numbers (k and M multiply by 1000
// and a million), durations, addresses, or texts in quotes. A field alone asks whether it has
// anything. Errors are *[SyntaxError].
func Parse(text string) (*Expression, error) {
	p := &syntax{text: text}
	if len(text) > maxLength {
		return nil, p.fail(0, "an expression of more than %d bytes", maxLength)
	}
	p.next()
	holds, err := p.either(0)
	if err == nil && (p.word != "" || p.quoted) {
		err = p.fail(p.from, "%q is not expected here: && or || join comparisons", p.word)
	}
	if err != nil {
		return nil, err
	}
	return &Expression{holds}, nil
}

// syntax reads words of an expression.
type syntax struct {
	text string
	from int    // where word begins
	to   int    // where the rest begins
	word string // "": the end
	// quoted: word is what stood in quotes.
	quoted bool
	broken error
}

func (p *syntax) fail(at int, format string, args ...any) error {
	return &SyntaxError{p.text, utf8.RuneCountInString(p.text[:at]) + 1, fmt.Sprintf(format, args...)}
}

// operators, the longer ones first.
var operators = []string{"&&", "||", "==", "!=", "!~", "<=", ">=", "<", ">", "~", "!", "(", ")"}

// next goes on to the next word.
func (p *syntax) next() {
	p.quoted = false
	for p.to < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.to]) >= 0 {
		p.to++
	}
	p.from = p.to
	rest := p.text[p.to:]
	if rest == "" {
		p.word = ""
		return
	}
	if rest[0] == '"' || rest[0] == '\'' {
		p.quote(rest)
		return
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			p.word, p.to = o, p.to+len(o)
			return
		}
	}
	n := strings.IndexAny(rest, " \t\r\n&|=!<>~()\"'")
	switch {
	case n < 0:
		n = len(rest)
	case n == 0: // a lone & or | or =
		_, n = utf8.DecodeRuneInString(rest)
	}
	p.word, p.to = rest[:n], p.to+n
}

// quote reads a text in quotes of either kind. A backslash before the quote has it belong to the
// text; any other stays, as regular expressions have them.
func (p *syntax) quote(rest string) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			p.word, p.quoted, p.to = b.String(), true, p.to+i+1
			return
		case c == '\\' && i+1 < len(rest):
			if i++; rest[i] != rest[0] {
				b.WriteByte(c)
			}
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	p.broken = p.fail(p.from, "a quote that does not end")
	p.word, p.to = "", len(p.text)
}

// is reports whether the next word is one of these, and goes on behind it.
func (p *syntax) is(words ...string) bool {
	for _, w := range words {
		if !p.quoted && p.word == w {
			p.next()
			return true
		}
	}
	return false
}

func (p *syntax) either(depth int) (func(*Candidate) bool, error) {
	left, err := p.both(depth)
	for err == nil && p.is("||", "or") {
		var right func(*Candidate) bool
		before := left
		right, err = p.both(depth)
		left = func(f *Candidate) bool { return before(f) || right(f) }
	}
	return left, err
}

func (p *syntax) both(depth int) (func(*Candidate) bool, error) {
	left, err := p.one(depth)
	for err == nil && p.is("&&", "and") {
		var right func(*Candidate) bool
		before := left
		right, err = p.one(depth)
		left = func(f *Candidate) bool { return before(f) && right(f) }
	}
	return left, err
}

func (p *syntax) one(depth int) (func(*Candidate) bool, error) {
	at := p.from
	switch {
	case depth > maxDepth:
		return nil, p.fail(at, "parentheses and ! nest deeper than %d", maxDepth)
	case p.is("!", "not"):
		inner, err := p.one(depth + 1)
		return func(f *Candidate) bool { return !inner(f) }, err
	case p.is("("):
		inner, err := p.either(depth + 1)
		if err == nil && !p.is(")") {
			err = p.orBroken(p.fail(p.from, "a ) is missing for the ( at column %d", at+1))
		}
		return inner, err
	}
	return p.comparison()
}

// orBroken is what is wrong with the word itself, or else err.
func (p *syntax) orBroken(err error) error {
	if p.broken != nil {
		return p.broken
	}
	return err
}

func (p *syntax) comparison() (func(*Candidate) bool, error) {
	at, name := p.from, p.word
	f, ok := fields[name]
	switch {
	case p.broken != nil:
		return nil, p.broken
	case name == "" && !p.quoted:
		return nil, p.fail(at, "a comparison is missing")
	case p.quoted || !ok:
		names := make([]string, 0, len(fields))
		for _, f := range Fields() {
			names = append(names, f[0])
		}
		return nil, p.fail(at, "no field %q; there are %s", name, strings.Join(names, ", "))
	}
	p.next()
	op, opAt := p.word, p.from
	if p.quoted || ordered[op] == 0 && op != "~" && op != "!~" {
		return f.alone(), p.broken
	}
	if why := f.refuses(op); why != "" {
		return nil, p.fail(opAt, "%s: %s", name, why)
	}
	p.next()
	value, valueAt := p.word, p.from
	switch {
	case p.broken != nil:
		return nil, p.broken
	case value == "" && !p.quoted:
		return nil, p.fail(valueAt, "a value is missing behind %s", op)
	case !p.quoted && isOperator(value):
		return nil, p.fail(valueAt, "a value is missing behind %s: texts stand in quotes", op)
	}
	holds, err := f.compare(op, value)
	if err != nil {
		return nil, p.fail(valueAt, "%s: %v", name, err)
	}
	p.next()
	return holds, nil
}

func isOperator(word string) bool {
	for _, o := range operators {
		if word == o {
			return true
		}
	}
	return false
}

// parseNumber reads a whole number, with k or M behind it.
func parseNumber(s string) (int64, error) {
	digits, times := s, int64(1)
	if d, ok := strings.CutSuffix(s, "k"); ok {
		digits, times = d, 1000
	} else if d, ok := strings.CutSuffix(s, "M"); ok {
		digits, times = d, 1_000_000
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > 1<<62/times || n < -(1<<62)/times {
		return 0, fmt.Errorf("%q is no number, as 200, 64k or 2M are", s)
	}
	return n * times, nil
}
