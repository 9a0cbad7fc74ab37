package negotiate_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// docs/library.md begins with a program of 15 lines that compiles; its other pieces do too, where they stand in a function.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "library.md"))
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 5)
	program := blocks[0][1]
	lines := 0
	for line := range strings.Lines(program) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	assert.LessOrEqual(t, lines, 15)
	require.True(t, strings.HasPrefix(string(page), "# The Go library\n\n```go\n"), "the page begins with it")
	pieces := "package main\n\nimport (\n\t\"context\"\n\t\"errors\"\n\t\"net/http\"\n\t\"time\"\n\n\t\"github.com/hhfr/hhfr/pkg/ctxstore/bolt\"\n\t\"github.com/hhfr/hhfr/pkg/negotiate\"\n\t\"github.com/hhfr/hhfr/pkg/streamer\"\n\t\"github.com/hhfr/hhfr/pkg/streamer/tcp\"\n\t\"github.com/hhfr/hhfr/pkg/wsrm\"\n)\n\n" +
		"func _(ctx context.Context, mux http.Handler, url string, message *streamer.Message, err error) {\n" + blocks[1][1] + "{\n" + blocks[2][1] + "_, _ = reply, err\n}\n{\n" + blocks[3][1] + "_, _ = client, err\n}\n{\n" + blocks[4][1] + "_ = err\n}\n}\n\nfunc main() {}\n"
	for name, text := range map[string]string{"program": program, "pieces": pieces} {
		// It is only laid over the module, so that the module's own packages are found and nobody else meets it.
		here, err := filepath.Abs(filepath.Join("_library", "main.go"))
		require.NoError(t, err)
		real := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(real, []byte(text), 0o600))
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {here: real}})
		require.NoError(t, err)
		over := filepath.Join(t.TempDir(), "overlay.json")
		require.NoError(t, os.WriteFile(over, overlay, 0o600))
		out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", over, "-o", os.DevNull, "./_library").CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}
