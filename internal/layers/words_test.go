package layers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// word is one that readers of other projects would have to look up, and the one to use.
type word struct {
	is     *regexp.Regexp
	use    string
	quoted bool     // also in string literals: errors, logs, help texts
	except []string // files and folders in which it is the right one
}

var words = []word{
	{is: phrase(`the other ends?`), use: "the peer", quoted: true},
	{is: phrase(`tells whether`), use: "reports whether", quoted: true},
	{is: phrase(`live(s|d) through`), use: "run", quoted: true},
	{is: phrase(`none the wiser`), use: "transparently to", quoted: true},
	{is: phrase(`how (the )?manieth`), use: "sequence number", quoted: true},
	{is: phrase(`farewells?`), use: "close frame", quoted: true},
	{is: phrase(`unasked`), use: "server-initiated", quoted: true},
	{is: phrase(`forsak(e|es|en|ing)|forsook`), use: "abandon", quoted: true},
	{is: phrase(`fruitless(ly)?`), use: "failed attempts", quoted: true},
	{is: phrase(`why is it not otherwise`), use: "design rationale", quoted: true},
	{is: phrase(`octets?`), use: "byte", except: wireFormat},
}

// fewer are words of which the tree is to have fewer: how often each stands in comments, pages and
// texts of the program is a figure (TestFigures).
var fewer = []word{
	{is: phrase(`(rooms?|gates?|tickets?|claim(s|ed)?)`), use: "credit, semaphore, slots"},
	{is: phrase(`(held|parked)`), use: "blocked"},
	{is: phrase(`(absorb(s|ed)?|under ?way|patient|inlet)`), use: "merge, in flight, deadline, relay"},
	{is: phrase(`(bore|insists?|insisted)`), use: "record progress, retry"},
	{is: phrase(`kept`), use: "pending, stored"},
	{is: phrase(`ways?`), use: "path"},
	{is: phrase(`tells? whether`), use: "reports whether"},
}

// wireFormat is where standards speak of octets.
var wireFormat = []string{"docs/wire-format.md", "internal/frame", "internal/wire"}

// phrase matches words in lower case that may stand on two lines.
func phrase(text string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(text, " ", `\s+`))
}

// Comments, pages and texts of the program use the words of the field. A changelog keeps those of
// its time.
func TestWords(t *testing.T) {
	found := map[string][]string{}
	for _, s := range read(t) {
		if s.name == "CHANGELOG.md" || s.name == "internal/layers/words_test.go" {
			continue
		}
		if list := wrongWords(s); len(list) > 0 {
			found[s.name] = list
		}
	}
	report(t, found)
}

func wrongWords(s source) (list []string) {
	prose, quoted := joined(s.prose), strings.ToLower(key.ReplaceAllString(strings.Join(s.quoted, "\n"), ""))
	for _, w := range words {
		if within(s.name, w.except) {
			continue
		}
		list = append(list, w.find(s.name, prose)...)
		if w.quoted {
			list = append(list, w.find(s.name, quoted)...)
		}
	}
	return list
}

func (w word) find(name, text string) (list []string) {
	for _, at := range w.is.FindAllStringIndex(text, -1) {
		if partOfWord(text, at[0]-1) || partOfWord(text, at[1]) {
			continue
		}
		line := 1 + strings.Count(text[:at[0]], "\n")
		list = append(list, fmt.Sprintf("%s:%d: %q: use %q", name, line, text[at[0]:at[1]], w.use))
	}
	return list
}

func partOfWord(text string, at int) bool {
	return at >= 0 && at < len(text) && (text[at] >= 'a' && text[at] <= 'z' || text[at] == '-' || text[at] == '_')
}

var (
	comment = regexp.MustCompile(`(?m)^//`)
	name    = regexp.MustCompile(`\w*Octets\b`) // of fields and methods
	key     = regexp.MustCompile(`json:"[^"]*"`)
	code    = regexp.MustCompile("`[^`\n]*\n?[^`\n]*`") // it may stand on two lines
)

// joined returns prose as one text in lower case, line for line, without the marks of comments and
// the code in backticks, and names.
func joined(lines []string) string {
	text := comment.ReplaceAllString(strings.Join(lines, "\n"), "  ")
	text = name.ReplaceAllString(text, "")
	breaks := func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) }
	text = code.ReplaceAllStringFunc(text, breaks)
	return strings.ToLower(text)
}

// The check itself finds what it should.
func TestWordsAreFound(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a.go", "package a\n\n// It is The Other End.\n", `a.go:3: "the other end": use "the peer"`},
		{"a.go", "package a\n\n// It is the other\n// end.\n", `a.go:3: "the other\n   end": use "the peer"`},
		{"a.go", "package a\n\nvar err = \"came unasked\"\n", `a.go:3: "unasked": use "server-initiated"`},
		{"a.go", "package a\n\nvar a = 1 // an octet\n", `a.go:3: "octet": use "byte"`},
		{"a.go", "package a\n\nvar keptOctets = `octets`\n", ""},
		{"a.go", "package a\n\n// Octets is a field of a [B.Octets].\n", ""},
		{"a.go", "package a\n\ntype a struct {\n\tb int `json:\"unasked\"`\n}\n", ""},
		{"a.go", "package a\n\n// application/octet-stream, `octets`, TestEveryOctet\n", ""},
		{"internal/frame/a.go", "package frame\n\n// an octet\n", ""},
		{"a.md", "a\n\nX tells\nwhether y\n", `a.md:3: "tells\nwhether": use "reports whether"`},
		{"a.md", "| octets |\n", `a.md:1: "octets": use "byte"`},
		{"docs/wire-format.md", "octets\n", ""},
	} {
		got := wrongWords(parse(tc.name, tc.text))
		if tc.want == "" {
			assert.Empty(t, got, tc.text)
			continue
		}
		assert.Equal(t, []string{tc.want}, got)
	}
}
