package layers_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	update = flag.Bool("update", false, "lower the limits of figures, and write anew what pages say of recorded runs")
	show   = flag.Bool("show", false, "print the figures")
)

const (
	// limitsFile has the most that each figure may be.
	limitsFile = "testdata/figures.txt"
	// largePackage is the number of lines, without tests, from which on the files and types of a
	// package are counted.
	largePackage = 2000
	// mostImports is how many packages of the module each of cmd may import.
	mostImports = 15
	// mostInCircle is how many files of a package may reach each other.
	mostInCircle = 10
)

// figures are measures of the tree, by name. Each may only get less.
type figures map[string]int

// TestFigures: no figure of the tree is above its limit.
func TestFigures(t *testing.T) {
	lookAtEveryFolder(t)
	got := measure(t)
	limits, err := readLimits()
	require.NoError(t, err)
	if *show {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			fmt.Printf("%-56s %7d  of %d\n", name, got[name], limits[name])
		}
	}
	if *update {
		limits = lowered(limits, got)
		writeLimits(t, limits)
	}
	for _, problem := range got.above(limits) {
		t.Error(problem)
	}
}

// above says which figures are above their limits, or have none, and which limits are of nothing.
func (f figures) above(limits figures) (problems []string) {
	for name, value := range f {
		limit, ok := limits[name]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s is %d, and has no limit: -update adds one", name, value))
		case value > limit:
			problems = append(problems, fmt.Sprintf("%s is %d, at most %d: make it less, or raise the limit in "+
				"internal/layers/%s and say in docs/rationale.md what for", name, value, limit, limitsFile))
		}
	}
	for name, value := range f {
		if strings.HasPrefix(name, "circle ") && value > mostInCircle {
			problems = append(problems, fmt.Sprintf("%s is %d, at most %d in any package: what several files need "+
				"of each other belongs in one below them", name, value, mostInCircle))
		}
	}
	for name := range limits {
		if _, ok := f[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s has a limit, and is no figure: -update takes it away", name))
		}
	}
	slices.Sort(problems)
	return problems
}

// lowered are limits that hold for figures: none is higher than before, but for imports up to
// mostImports.
func lowered(limits, got figures) figures {
	to := figures{}
	for name, value := range got {
		if limit, ok := limits[name]; ok {
			value = min(value, limit)
		}
		if strings.HasPrefix(name, "imports ") {
			value = max(value, mostImports)
		}
		to[name] = value
	}
	return to
}

func TestFiguresOnlyGetLess(t *testing.T) {
	limits := figures{"a": 3, "b": 3, "gone": 1, "circle p": 11, "imports a": 9, "imports b": 18}
	got := figures{"a": 2, "b": 4, "new": 5, "circle p": 11, "imports a": 8, "imports b": 17}
	assert.Equal(t, []string{
		"b is 4, at most 3: make it less, or raise the limit in internal/layers/testdata/figures.txt and say in " +
			"docs/rationale.md what for",
		"circle p is 11, at most 10 in any package: what several files need of each other belongs in one below " +
			"them",
		"gone has a limit, and is no figure: -update takes it away",
		"new is 5, and has no limit: -update adds one",
	}, got.above(limits))
	assert.Equal(t, figures{"a": 2, "b": 3, "new": 5, "circle p": 11, "imports a": mostImports, "imports b": 17},
		lowered(limits, got))
}

// measure counts what the tree is held to.
func measure(t *testing.T) figures {
	t.Helper()
	f := figures{}
	f.ofHouse(t)
	for _, s := range read(t) {
		if s.name == "CHANGELOG.md" || s.name == "internal/layers/words_test.go" {
			continue
		}
		for _, w := range fewer {
			f["words for "+w.use] += len(w.find(s.name, joined(s.prose)))
		}
	}
	exported := exportData(t)
	for _, p := range largePackages(t) {
		f["circle "+p.folder] = largestCircle(t, path.Join(module, p.folder), p.sources, exported)
		largest := largestType(t, p.sources)
		f["fields "+p.folder], f["methods "+p.folder] = largest.fields, largest.methods
	}
	for _, p := range packages(t, "linux") {
		if folder, _ := ours(p.ImportPath); within(folder, []string{"cmd"}) {
			own := func(imported string) bool { _, ok := ours(imported); return !ok }
			f["imports "+folder] = len(slices.DeleteFunc(p.Imports, own))
		}
	}
	return f
}

// tableOfLimits is what docs/architecture.md says of them.
func tableOfLimits() (string, error) {
	f, err := readLimits()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d tokens of Go without tests and comments; %d names exported by public packages; %d type\n"+
		"names that stand in several packages; %d packages of the module imported by `cmd/hhfr`.\n\n",
		f["tokens"], f["exported names"], f["type names of several packages"], f["imports cmd/hhfr"])
	b.WriteString("| package | largest circle of files | fields of the largest type | its methods |\n" +
		"|---|---:|---:|---:|\n")
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if folder, found := strings.CutPrefix(name, "circle "); found {
			fmt.Fprintf(&b, "| `%s` | %d | %d | %d |\n", folder, f[name], f["fields "+folder], f["methods "+folder])
		}
	}
	return b.String(), nil
}

// readLimits reads lines of a name and a number; those that begin with # are comments.
func readLimits() (figures, error) {
	text, err := os.ReadFile(limitsFile)
	if err != nil {
		return nil, err
	}
	limits := figures{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if limits[line[:max(at, 0)]], err = strconv.Atoi(line[at+1:]); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

func writeLimits(t *testing.T, limits figures) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# The most that each figure of the tree may be (TestFigures). `make figures` prints what they\n" +
		"# are; go test ./internal/layers -run 'Figures|Claims' -update lowers what has become less.\n")
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		fmt.Fprintf(&b, "%s %d\n", name, limits[name])
	}
	require.NoError(t, os.WriteFile(limitsFile, []byte(b.String()), 0o644))
}
