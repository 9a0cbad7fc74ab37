//go:build interop

package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// Two clones, in folders of different lengths, give the same release: archives, packages and bill.
func TestInteropReleases(t *testing.T) {
	if os.Getenv("HHFR_NIGHTLY") == "" {
		t.Skip("two releases take minutes: HHFR_NIGHTLY=1 makes them")
	}
	git, tool := shared.Program(t, "git"), shared.Program(t, "make")
	shared.Program(t, "zip")
	run := func(program string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var sums []string
	for _, folder := range []string{"here", "in-a-longer-folder"} {
		dir := filepath.Join(t.TempDir(), folder)
		run(git, "clone", "-q", "..", dir)
		run(tool, "-C", dir, "release", "TARGETS=linux/arm64 windows/amd64", "PACKAGES=termux/aarch64")
		sums = append(sums, string(shared.Read(t, filepath.Join(dir, "dist", "release", "SHA256SUMS"))))
	}
	for _, name := range []string{
		"-linux-arm64.tar.gz\n", "-windows-amd64.zip\n", "_aarch64.deb\n", ".cdx.json\n", ".html\n",
	} {
		assert.Contains(t, sums[0], name)
	}
	assert.Equal(t, sums[0], sums[1])
}
