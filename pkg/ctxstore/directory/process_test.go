package directory_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

// The test binary starts itself in a role, to be another process or another user.
const (
	roleVariable = "HHFR_TEST_ROLE"
	dirVariable  = "HHFR_TEST_DIR"
	counter      = "urn:counter"
)

var roles = map[string]func(t *testing.T, dir string){
	"count": func(t *testing.T, dir string) { storetest.Count(t, open(t, dir, directory.Config{}), counter, 100) },
}

// TestRole is run by those other processes.
func TestRole(t *testing.T) {
	role := os.Getenv(roleVariable)
	if role == "" {
		t.Skip("only run by other tests, in a process of its own")
	}
	do := roles[role]
	require.NotNil(t, do, "role %q", role)
	do(t, os.Getenv(dirVariable))
}

// inRole returns a process in a role; before is a command that starts it.
func inRole(t *testing.T, role, dir, binary string, before ...string) *exec.Cmd {
	t.Helper()
	argv := append(before, binary, "-test.run=^TestRole$", "-test.v")
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir, "TMPDIR="+filepath.Dir(binary),
		"GOCOVERDIR=")
	return cmd
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

func TestProcessesLoseNoUpdate(t *testing.T) {
	dir := t.TempDir()
	done := make(chan string)
	for range 3 {
		cmd := inRole(t, "count", dir, self(t))
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				done <- err.Error() + "\n" + string(out)
				return
			}
			done <- ""
		}()
	}
	for range 3 {
		assert.Empty(t, <-done)
	}
	e, err := open(t, dir, directory.Config{}).Get(t.Context(), counter)
	require.NoError(t, err)
	assert.Equal(t, "300", string(e.Value))
}
