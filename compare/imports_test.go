package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// What is measured is what a module of somebody else has. Go lets compare import the internal
// packages of hhfr, since the paths of both begin alike; a copy of it that has another path, and
// names the checkout as somebody else would, must compile.
func TestUsesWhatOthersHave(t *testing.T) {
	const path, other = "github.com/hhfr/hhfr/compare", "example.org/compare"
	checkout, err := program.Checkout()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(".")))
	rename := func(file string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), path, other)), 0o600))
	}
	rename(filepath.Join(dir, "go.mod"))
	for _, below := range []string{"*.go", "*/*.go", "*/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(dir, below))
		require.NoError(t, err)
		for _, file := range files {
			rename(file)
		}
	}
	in := func(args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s: %s", strings.Join(args, " "), out)
		return out
	}
	var mod struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	require.NoError(t, json.Unmarshal(in("mod", "edit", "-json"), &mod))
	require.Len(t, mod.Replace, 1, "nothing but hhfr itself is replaced")
	require.Equal(t, "github.com/hhfr/hhfr", mod.Replace[0].Old.Path)
	in("mod", "edit", "-replace", "github.com/hhfr/hhfr="+checkout)
	for _, tags := range []string{"", "interop,soak"} {
		in("vet", "-tags", tags, "./...")
	}
}
