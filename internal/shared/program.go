package shared

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of another program that a test needs. If it is missing the test is
// skipped with its name; with HHFR_CI=1, where all are installed, it fails.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("HHFR_CI") == "1":
		tb.Fatalf("%s is not installed", name)
	default:
		tb.Skipf("%s is not installed", name)
	}
	return path
}
