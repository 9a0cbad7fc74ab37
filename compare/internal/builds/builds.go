// Package builds builds the programs of other people's stacks that measurements need.
package builds

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// Built is where the clients and servers of testdata/interop/stacks are.
type Built struct {
	Dir     string // below bin of the checkout, where they stay for the next run
	Sources string
}

// Stacks builds parts, as build.sh there names them, at once: each unless it was built of the same
// sources.
func Stacks(ctx context.Context, parts ...string) (b Built, err error) {
	checkout, err := program.Checkout()
	if err != nil {
		return b, err
	}
	b.Dir = filepath.Join(checkout, "bin", "stacks")
	b.Sources = filepath.Join(checkout, "testdata", "interop", "stacks")
	stamp, err := digest(b.Sources)
	if err != nil {
		return b, err
	}
	failed := make([]error, len(parts))
	var wait sync.WaitGroup
	for i, part := range parts {
		wait.Go(func() { failed[i] = b.build(ctx, part, stamp) })
	}
	wait.Wait()
	return b, errors.Join(failed...)
}

// digest is of the files of a folder.
func digest(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		_, _ = sum.Write(text) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (b Built) build(ctx context.Context, part, stamp string) error {
	built := filepath.Join(b.Dir, "built-"+part)
	if old, err := os.ReadFile(built); err == nil && string(old) == stamp {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", filepath.Join(b.Sources, "build.sh"), b.Dir, part)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return os.WriteFile(built, []byte(stamp), 0o644)
}
