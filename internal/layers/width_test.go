package layers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

const (
	widestProse = 100 // columns of comments, and of prose in Markdown
	widestCode  = 120
	tab         = 4
)

// Comments and prose wrap at 100 columns, code at 120.
func TestWidths(t *testing.T) {
	found := map[string][]string{}
	for _, s := range read(t) {
		if s.name == "docs/cli.md" { // made from help texts
			continue
		}
		if list := tooWide(s); len(list) > 0 {
			found[s.name] = list
		}
	}
	report(t, found)
}

func tooWide(s source) (list []string) {
	markdown := strings.HasSuffix(s.name, ".md")
	for i, l := range s.lines {
		most := widestCode
		switch {
		case markdown && (s.prose[i] == "" || strings.HasPrefix(strings.TrimSpace(l), "|")):
			continue // code blocks and tables
		case markdown, isComment(l) && s.prose[i] != "":
			most = widestProse
		}
		if markdown {
			l = unseen.ReplaceAllString(l, "")
		}
		hasURL := most == widestProse && strings.Contains(l, "://")
		if got := width(l); got > most && !hasURL {
			list = append(list, fmt.Sprintf("%s:%d: %d columns, at most %d", s.name, i+1, got, most))
		}
	}
	return list
}

// unseen are the marks of what is made of recorded runs, which no reader sees.
var unseen = regexp.MustCompile(`<!--.*?-->`)

// isComment reports whether a line has nothing but a comment, and none that a tool reads.
func isComment(line string) bool {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
	return ok && (text == "" || text[0] == ' ' || text[0] == '\t')
}

func width(line string) int {
	return utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
}

// The check itself finds what it should.
func TestWidthsAreFound(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tc := range []struct {
		name, text string
		at         []string
	}{
		{"a.go", "package a\n\n// " + long(97) + "\n// " + long(98), []string{"a.go:4: 101"}},
		{"a.go", "package a\n\nvar a = 1 // " + long(107) + "\nvar b = 1 // " + long(108), []string{"a.go:4: 121"}},
		{"a.go", "package a\n\nfunc f() {\n\t// " + long(94) + "\n}", []string{"a.go:4: 101"}},
		{"a.go", "package a\n\nvar a = `\n// " + long(110) + "\n`", nil},
		{"a.go", "package a\n\nvar a = `\n// " + long(120) + "\n`", []string{"a.go:4: 123"}},
		{"a.go", "package a\n\n// https://example.org/" + long(100), nil},
		{"a.go", "package a\n\nvar a = \"https://\" + \"" + long(100) + "\"", []string{"a.go:3: 123"}},
		{"a.md", long(90) + " <!-- made: " + long(90) + " -->" + long(9) + "<!-- end -->", nil},
		{"a.md", "⊕" + long(99) + "\n⊕" + long(100), []string{"a.md:2: 101"}},
		{"a.md", "| " + long(101) + " |\n\n```\n" + long(101) + "\n```\n", nil},
	} {
		got := tooWide(parse(tc.name, tc.text))
		if assert.Len(t, got, len(tc.at), "%v", got) && len(got) > 0 {
			assert.Contains(t, got[0], tc.at[0])
		}
	}
}
