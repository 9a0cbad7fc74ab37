package layers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPageHasNoHTTP: net/http alone takes the page for browsers past its size (scripts/page.sh).
func TestPageHasNoHTTP(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/hhfr/internal/page/wasm")
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := list.Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	assert.Contains(t, packages, module+"/internal/capture")
	assert.NotContains(t, packages, "net/http")
}
