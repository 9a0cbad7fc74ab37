package shared

import (
	"os"
	"os/exec"
	"testing"
)

// Program is the path of another program that a test needs. Where it is missing the test is skipped
// by its name, and fails with HHFR_CI=1, which has all of them.
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
