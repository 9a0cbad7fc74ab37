package layers_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	lawOfTable = regexp.MustCompile(`(?m)^\| (\d+) \| \*\*`)
	testsOfLaw = regexp.MustCompile(`(?m)^### Tests of law (\d+):`)
	// listed is an item of such a list: a folder, then the names of tests, over several lines.
	listed   = regexp.MustCompile("(?m)^- `([\\w/.]+)`:((?:.*\n)(?:  .*\n)*)")
	inFolder = regexp.MustCompile("`((?:pkg|internal|cmd)/[\\w/]+)`,\\s+`((?:Test|Fuzz)\\w+)`")
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// Each law of docs/architecture.md has a list of tests, and every test named there is in the folder
// that the list gives.
func TestLawsHaveTests(t *testing.T) {
	page := docs(t, "architecture.md")
	laws := lawOfTable.FindAllStringSubmatch(page, -1)
	lists := testsOfLaw.FindAllStringSubmatchIndex(page, -1)
	require.NotEmpty(t, laws, "no table of laws was found")
	require.Len(t, lists, len(laws), "lists of tests, one for each law")
	have := tests(t)
	for i, at := range lists {
		law := page[at[2]:at[3]]
		require.Equal(t, laws[i][1], law, "the lists stand in the order of the table")
		list, _, _ := strings.Cut(page[at[1]:], "\n#")
		named := 0
		for _, item := range listed.FindAllStringSubmatch(list+"\n", -1) {
			for _, name := range testName.FindAllString(item[2], -1) {
				named++
				assert.True(t, have[item[1]][name], "law %s: %s has no %s", law, item[1], name)
			}
		}
		assert.Len(t, testName.FindAllString(list, -1), named, "law %s: a test is named without its folder", law)
		assert.NotZero(t, named, "law %s names no test", law)
	}
}

// Every test that a page names exists, and is in the folder that the page names before it.
func TestNamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	folders := tests(t)
	for _, names := range folders {
		for name := range names {
			have[name] = true
		}
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, path := range pages {
		page := docs(t, filepath.Base(path))
		for _, name := range testName.FindAllString(page, -1) {
			assert.True(t, have[name], "%s names %s, which does not exist", path, name)
		}
		for _, m := range inFolder.FindAllStringSubmatch(page, -1) {
			assert.True(t, folders[m[1]][m[2]], "%s: %s has no %s", path, m[1], m[2])
		}
	}
}

var inTicks = regexp.MustCompile("`([^`]+)`")

// The table of packages in docs/architecture.md says of each package the floor that the plan says,
// and has all packages of the plan, but for this one and those that only test.
func TestTableOfPackagesIsThePlan(t *testing.T) {
	_, table, found := strings.Cut(docs(t, "architecture.md"), "\n## Packages\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	floors := floorsOfTable(table)
	require.NotEmpty(t, floors, "no row of a package was found")
	for name, stated := range floors {
		of, ok := find(name)
		if assert.True(t, ok, "docs/architecture.md has %s, the plan does not", name) {
			assert.Equal(t, floorName(of.floor), stated, "the floor of %s in docs/architecture.md", name)
		}
	}
	for name := range plan {
		if within(name, []string{"internal/layers", "internal/middleboxes"}) {
			continue
		}
		_, own := floors[name]
		_, above := floors[house(name)] // its row also holds for the folders below
		assert.True(t, own || above, "%s has no row in docs/architecture.md", name)
	}
}

// floorsOfTable returns the floors by package. A row whose first cell is empty is on the floor of
// the row above.
func floorsOfTable(table string) map[string]string {
	floors := map[string]string{}
	floor := ""
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(cells[1]), " "); first != "" {
			floor = first
		}
		for _, name := range inTicks.FindAllStringSubmatch(cells[2], -1) {
			if name[1] != "hhfr" {
				floors[name[1]] = floor
			}
		}
	}
	return floors
}

func floorName(floor int) string {
	if floor == base {
		return "base"
	}
	return strconv.Itoa(floor)
}

func docs(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(page)
}

// tests returns the names of the tests of the module by folder, whatever tag they are built with.
func tests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := map[string]map[string]bool{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if names[folder] == nil {
			names[folder] = map[string]bool{}
		}
		for _, f := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names[folder][f[1]] = true
		}
		return nil
	}))
	require.NotEmpty(t, names)
	return names
}
