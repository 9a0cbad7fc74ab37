package gocode

import (
	"go/token"
	"strconv"
	"strings"
	"unicode"
)

// exported makes an exported name of Go of a name in XML: each run of letters and digits begins
// with a capital, and everything else is left out. A name that Go cannot export as it is has an X
// before it.
func exported(name string) string {
	var b strings.Builder
	start := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			start = true
		case start:
			b.WriteRune(unicode.ToUpper(r))
			start = false
		default:
			b.WriteRune(r)
		}
	}
	if text := b.String(); token.IsExported(text) {
		return text
	}
	return "X" + b.String()
}

// PackageName makes the name of a package of a text, such as the name of a file.
func PackageName(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || b.Len() > 0 && r >= '0' && r <= '9' {
			b.WriteRune(r)
		}
	}
	switch name := b.String(); {
	case name == "" || name == "main" || !token.IsIdentifier(name):
		return "service"
	default:
		return name
	}
}

// nameScope has the names that are taken in a package or a struct.
type nameScope map[string]bool

// take takes the first of several names that is free, or the last one with a number.
func (s nameScope) take(names ...string) string {
	for _, name := range names {
		if !s[name] {
			s[name] = true
			return name
		}
	}
	last := names[len(names)-1]
	for n := 2; ; n++ {
		if name := last + strconv.Itoa(n); !s[name] {
			s[name] = true
			return name
		}
	}
}
