package transfer_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/transfer"
)

// Whatever a file is, it is refused with the line, or what it puts into a store is exported again
// and imported elsewhere as the same.
func FuzzImport(f *testing.F) {
	from := used(f, "memory", "seed")
	var file bytes.Buffer
	_, err := transfer.Export(f.Context(), &file, from, "", nil)
	require.NoError(f, err)
	whole := file.Bytes()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte("urn:x:1"), []byte("no URI"), 1))
	f.Add(bytes.Replace(whole, []byte(`{"contexts":1}`), []byte(`{"contexts":2}`), 1))
	f.Add([]byte(`{"contexts":1}` + "\n" + `{"entries":1}`))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, in []byte) {
		store := memory.New(memory.Config{})
		defer func() { require.NoError(t, store.Close()) }()
		_, err := transfer.Import(t.Context(), store, bytes.NewReader(in), transfer.ImportOptions{})
		if err != nil {
			var bad *transfer.FileError
			require.True(t, errors.As(err, &bad), "%v", err)
			require.Positive(t, bad.Line)
			return
		}
		var first, second bytes.Buffer
		n, err := transfer.Export(t.Context(), &first, store, "", nil)
		require.NoError(t, err)
		other := memory.New(memory.Config{})
		defer func() { require.NoError(t, other.Close()) }()
		done, err := transfer.Import(t.Context(), other, bytes.NewReader(first.Bytes()), transfer.ImportOptions{})
		require.NoError(t, err)
		m, err := transfer.Export(t.Context(), &second, other, "", nil)
		require.NoError(t, err)
		if done.Expired == 0 {
			require.Equal(t, n, m)
		}
	})
}
