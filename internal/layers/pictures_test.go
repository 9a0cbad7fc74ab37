package layers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestPicturesAreOfTheirResults: scripts/pictures.py draws the pictures of the pages as they are.
func TestPicturesAreOfTheirResults(t *testing.T) {
	python := shared.Program(t, "python3")
	root := filepath.Join("..", "..")
	dir := t.TempDir()
	draw := exec.CommandContext(t.Context(), python, filepath.Join(root, "scripts", "pictures.py"), dir)
	out, err := draw.CombinedOutput()
	require.NoError(t, err, "%s", out)
	drawn, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, drawn)
	for _, name := range drawn {
		have, err := os.ReadFile(filepath.Join(root, "docs", "pictures", filepath.Base(name)))
		require.NoError(t, err)
		assert.Equal(t, string(shared.Read(t, name)), string(have), "stale: python3 scripts/pictures.py")
	}
}

var (
	linkTo  = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	foreign = regexp.MustCompile(`^[a-z]+:`)
)

// TestLinksLeadSomewhere: what pages link to is there, and README links every page of docs.
func TestLinksLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	linked := map[string]bool{}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		for _, m := range linkTo.FindAllStringSubmatch(string(shared.Read(t, page)), -1) {
			if foreign.MatchString(m[1]) {
				continue
			}
			to := filepath.Join(filepath.Dir(page), m[1])
			assert.FileExists(t, to, "linked from %s", page)
			if filepath.Base(page) == "README.md" {
				linked[to] = true
			}
		}
	}
	for _, page := range pages {
		assert.True(t, linked[page], "README does not link %s", page)
	}
}
