// Package program builds and runs the command hhfr of the checkout that is measured.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Checkout is the folder of hhfr that this module is compiled with.
var Checkout = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/hhfr/hhfr").Output()
	if err != nil {
		return "", fmt.Errorf("the checkout of hhfr, which is looked for in the folder of compare: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

// Path is that of bin/hhfr in the checkout, which is built first.
var Path = sync.OnceValues(func() (string, error) {
	checkout, err := Checkout()
	if err != nil {
		return "", err
	}
	path := filepath.Join(checkout, "bin", "hhfr")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/hhfr")
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("hhfr is not built: %w: %s", err, said)
	}
	return path, nil
})

// Used is what a process took: processor time, and the most memory that was resident, in bytes; 0
// where the system does not say.
type Used struct {
	Processor time.Duration
	Resident  int64
}

// partial is the exit code of hhfr for results that lack something.
const partial = 5

// Run runs hhfr to its end and returns what it prints, also with an error. Results that lack
// something are no error.
func Run(ctx context.Context, in io.Reader, args ...string) (out []byte, used Used, err error) {
	path, err := Path()
	if err != nil {
		return nil, used, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = in, &errs
	out, err = cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == partial {
		err = nil
	}
	if err != nil {
		return out, used, fmt.Errorf("hhfr %s: %w: %s", strings.Join(args[:min(len(args), 3)], " "), err, &errs)
	}
	used.Processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	used.Resident = resident(cmd.ProcessState)
	return out, used, nil
}
