// Package style is about what a description of messages leaves open: the prefixes of namespaces,
// and the white space between elements.
//
// The own shape of a description has a prefix slot for each namespace and no white space. In the
// style of a message it is much like the shape of that message, so that little is left to be said
// of the one where the other is known (docs/wire-format.md, section 4.1).
package style

import (
	"errors"
	"strings"
)

const (
	// MaxText is the longest text of a style, in bytes.
	MaxText = 255
	// maxAdded bounds what a style may add to a shape, in bytes of white space.
	maxAdded = 64 << 10

	generated = "*" // in place of a prefix: the slot stays
	separator = ":" // between prefixes
	indents   = ";" // before the white space
)

// Style is how a message writes what its description leaves open. The zero value has no prefixes
// and no white space.
type Style struct {
	// prefixes stand for the slots of an own shape, in their order; empty: none, generated: a slot.
	prefixes []string
	// line is a line end and unit what each level adds to it; both are empty where elements follow
	// each other without white space.
	line, unit string
}

// Text is the style as it travels.
func (s *Style) Text() string {
	t := strings.Join(s.prefixes, separator)
	if s.line != "" {
		t += indents + s.line + s.unit
	}
	return t
}

var errStyle = errors.New("malformed style")

// Parse reads what [Style.Text] wrote.
func Parse(text string) (*Style, error) {
	prefixes, white, indented := strings.Cut(text, indents)
	s := &Style{prefixes: strings.Split(prefixes, separator)}
	if len(text) > MaxText || strings.ContainsAny(prefixes, "<>&\"' \t\r\n/=") {
		return nil, errStyle
	}
	if indented {
		s.line, s.unit = cutLine(white)
		if s.line == "" || strings.Trim(s.unit, " \t") != "" {
			return nil, errStyle
		}
	}
	return s, nil
}

// cutLine cuts a line end from the white space after it.
func cutLine(white string) (line, rest string) {
	for _, line := range []string{"\r\n", "\n"} {
		if rest, ok := strings.CutPrefix(white, line); ok {
			return line, rest
		}
	}
	return "", white
}
