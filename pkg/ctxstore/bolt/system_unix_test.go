//go:build unix

package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
)

func TestLockBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	one, err := bolt.LockBeside(path, true, 0)
	require.NoError(t, err)
	two, err := bolt.LockBeside(path, true, 0)
	require.NoError(t, err, "readers share it")
	_, err = bolt.LockBeside(path, false, 0)
	require.ErrorIs(t, err, bolt.ErrLocked)
	one()
	two()
	alone, err := bolt.LockBeside(path, false, 0)
	require.NoError(t, err)
	_, err = bolt.LockBeside(path, true, 0)
	require.ErrorIs(t, err, bolt.ErrLocked)
	alone()
}
