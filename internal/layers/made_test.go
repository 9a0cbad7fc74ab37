package layers_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hhfr/hhfr/internal/shared"
)

// made matches a part of a page that is made from a recorded run: marks that readers do not see,
// the first with the name of who makes it and arguments.
var made = regexp.MustCompile(`(?s)<!-- made: ([\w-]+) ?([^>]*?) -->(.*?)<!-- end -->`)

// partMakers make parts of pages, by name.
type partMakers map[string]func(args ...string) (string, error)

// remake returns a page with the parts that some makers make, and whose parts it has: false, those
// of others. A part is
//
//	… it takes <!-- made: ratio data/runs.csv; 5 calls -->0.68<!-- end --> of a tunnel …
//
// or stands on lines of its own, the marks on theirs. Errors: a maker's, and a mark where it would
// make HTML of the text behind it.
func remake(page string, by partMakers) (remade string, has map[string]bool, err error) {
	has = map[string]bool{}
	var b strings.Builder
	at := 0
	for _, m := range made.FindAllStringSubmatchIndex(page, -1) {
		name, args, have := page[m[2]:m[3]], page[m[4]:m[5]], page[m[6]:m[7]]
		lines := strings.HasPrefix(have, "\n")
		begins := strings.TrimSpace(page[strings.LastIndexByte(page[:m[0]], '\n')+1:m[0]]) == ""
		maker, known := by[name]
		has[name] = known
		if begins != lines {
			return "", nil, fmt.Errorf("%s: a mark begins a line if and only if nothing else is on it", name)
		}
		if !known {
			continue
		}
		text, err := maker(strings.Split(args, "; ")...)
		if err != nil {
			return "", nil, fmt.Errorf("%s %s: %w", name, args, err)
		}
		if lines {
			text = "\n" + strings.Trim(text, "\n") + "\n"
		}
		b.WriteString(page[at:m[6]])
		b.WriteString(text)
		at = m[7]
	}
	return b.String() + page[at:], has, nil
}

// remakePages holds README.md and the pages of docs to what makers make, or writes them anew. Each
// maker has something to make. others have the rest of the parts.
func remakePages(t *testing.T, update bool, by partMakers) (others []string) {
	t.Helper()
	pages, err := filepath.Glob(shared.Testdata(t, "..", "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	all := map[string]bool{}
	for _, path := range append(pages, shared.Testdata(t, "..", "README.md")) {
		have := string(shared.Read(t, path))
		want, has, err := remake(have, by)
		maps.Copy(all, has)
		switch {
		case err != nil:
			t.Errorf("%s: %v", path, err)
		case have == want:
		case !update:
			t.Errorf("%s is not what its recorded runs say: go test -run %s -update writes it", path, t.Name())
		default:
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range by {
		if !all[name] {
			t.Errorf("no page has what %s makes", name)
		}
		delete(all, name)
	}
	return slices.Sorted(maps.Keys(all))
}
