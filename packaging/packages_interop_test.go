//go:build interop

package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropPackages: `make packages` makes packages that dpkg reads, with the binary, man pages,
// completions and units in their places, and the binary in this machine's runs.
func TestInteropPackages(t *testing.T) {
	dpkg, tool := shared.Program(t, "dpkg-deb"), shared.Program(t, "make")
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	own := strings.TrimSpace(run("dpkg", "--print-architecture"))
	run(tool, "-C", "..", "packages", "PACKAGES=debian/"+own+" termux/aarch64", "VERSION=v1.2.3")

	deb := filepath.Join("..", "dist", "packages", "hhfr_1.2.3_"+own+".deb")
	assert.Equal(t, "hhfr\n", run(dpkg, "-f", deb, "Package"))
	assert.Equal(t, "1.2.3\n", run(dpkg, "-f", deb, "Version"))
	assert.Equal(t, own+"\n", run(dpkg, "-f", deb, "Architecture"))
	dir := t.TempDir()
	run(dpkg, "-x", deb, dir)
	for _, name := range []string{
		"usr/bin/hhfr", "usr/lib/systemd/system/hhfr-proxy@.service", "usr/lib/systemd/system/hhfr-serve@.service",
		"usr/share/doc/hhfr/copyright", "usr/share/doc/hhfr/examples/near.conf",
		"usr/share/doc/hhfr/examples/far.conf",
		"usr/share/man/man1/hhfr.1.gz", "usr/share/man/man1/hhfr-proxy.1.gz",
		"usr/share/bash-completion/completions/hhfr", "usr/share/zsh/vendor-completions/_hhfr",
		"usr/share/fish/vendor_completions.d/hhfr.fish",
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Positive(t, info.Size(), name)
	}
	assert.DirExists(t, filepath.Join(dir, "etc", "hhfr"))
	assert.Contains(t, run(filepath.Join(dir, "usr", "bin", "hhfr"), "version"), "hhfr ")
	assert.Contains(t, run(filepath.Join(dir, "usr", "bin", "hhfr"), "decode",
		shared.Testdata(t, "pcap", "plain.pcapng")), "echoFloatArray")

	termux := filepath.Join("..", "dist", "packages", "hhfr-termux_1.2.3_aarch64.deb")
	assert.Equal(t, "aarch64\n", run(dpkg, "-f", termux, "Architecture"))
	assert.Contains(t, run(dpkg, "-c", termux), " ./data/data/com.termux/files/usr/bin/hhfr\n")
	assert.NotContains(t, run(dpkg, "-c", termux), " ./usr/")
}

// TestInteropEmptyRoot: the binary runs in a root that has nothing else, as the container's user.
func TestInteropEmptyRoot(t *testing.T) {
	unshare := shared.Program(t, "unshare")
	if exec.CommandContext(t.Context(), unshare, "-rm", "true").Run() != nil {
		t.Skip("this system does not let us change the root")
	}
	root := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(root, "hhfr"), "../cmd/hhfr")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, args := range []string{"version", "decode --help", "completion bash"} {
		c := exec.CommandContext(t.Context(), unshare, append([]string{"-r", "--root=" + root, "/hhfr"},
			strings.Fields(args)...)...)
		c.Env = []string{}
		out, err = c.CombinedOutput()
		assert.NoError(t, err, "%s", out)
		assert.NotEmpty(t, out)
	}
}
