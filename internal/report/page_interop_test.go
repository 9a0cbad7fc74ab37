//go:build interop

package report_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/report"
	"github.com/hhfr/hhfr/internal/shared"
)

// A browser draws all pictures on a page that is as wide as a phone, and on a wide one, without
// anything that runs over.
func TestInteropPagesInABrowser(t *testing.T) {
	chromium := shared.Program(t, "chromium")
	list := report.Make(read(t, "run.jsonl"))
	pictures := 0
	for _, s := range list {
		if s.Chart != nil {
			pictures++
		}
	}
	var page bytes.Buffer
	require.NoError(t, report.Write(&page, "html", list))
	page.WriteString("<script>document.title = document.documentElement.scrollWidth</script>")
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	require.NoError(t, os.WriteFile(file, page.Bytes(), 0o600))
	for _, width := range []int{500, 1280} { // no window is less wide than 500
		c := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu",
			"--no-first-run", "--user-data-dir="+filepath.Join(dir, strconv.Itoa(width)),
			fmt.Sprintf("--window-size=%d,2000", width), "--virtual-time-budget=4000", "--dump-dom", "file://"+file)
		var said bytes.Buffer
		c.Stderr = &said
		dom, err := c.Output()
		require.NoError(t, err, &said)
		assert.Equal(t, pictures, strings.Count(string(dom), "<canvas"), "%s", &said)
		_, rest, _ := strings.Cut(string(dom), "<title>")
		title, _, _ := strings.Cut(rest, "</title>")
		across, err := strconv.Atoi(title)
		require.NoError(t, err, title)
		assert.LessOrEqual(t, across, width)
	}
}
