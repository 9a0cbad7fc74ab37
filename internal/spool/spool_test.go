package spool_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/spool"
)

// Bodies that are written at the same time, long and short, come back as they were written, also in
// the space of earlier ones.
func TestBodiesComeBack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s spool.Spool
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		want, bodies := make([][]byte, 30), make([]*spool.Spooled, 30)
		for i := range bodies {
			bodies[i] = s.Body()
		}
		for range 600 {
			i := rnd.IntN(len(bodies))
			piece := bytes.Repeat([]byte{byte(rnd.Uint32())}, rnd.IntN(1<<(4+i%14)))
			want[i] = append(want[i], piece...)
			_, err := bodies[i].Write(piece)
			require.NoError(t, err)
		}
		want[0] = bytes.Repeat([]byte("long "), 1<<20)
		bodies[0].Free()
		_, err := bodies[0].Write(want[0])
		require.NoError(t, err)
		for i, b := range bodies {
			require.Equal(t, int64(len(want[i])), b.Len())
			got, err := io.ReadAll(b.Reader())
			require.NoError(t, err)
			require.True(t, bytes.Equal(want[i], got), "body %d", i)
			start, err := b.Start()
			require.NoError(t, err)
			require.True(t, bytes.Equal(want[i][:min(len(want[i]), spool.Kept)], start))
			b.Free()
			assert.Zero(t, b.Len())
		}
	}
	require.NoError(t, s.Close())
}

// If only the beginning is needed, the rest is counted.
func TestShortBodies(t *testing.T) {
	s := spool.Spool{Short: func(start []byte) int64 {
		if bytes.HasPrefix(start, []byte{1, 2, 2, 2}) {
			return 2 << 20
		}
		return spool.Kept
	}}
	b := s.Body()
	for range 5 {
		_, err := b.Write(make([]byte, 300<<10))
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1500<<10, b.Len())
	start, err := b.Start()
	require.NoError(t, err)
	assert.Len(t, start, spool.Kept)

	for _, piece := range []int{100 << 10, spool.Kept, 3 << 20} { // of what is wanted longer
		b := s.Body()
		want := append([]byte{1}, bytes.Repeat([]byte{2}, 3<<20)...)
		_, err := b.Write(want[:1])
		require.NoError(t, err)
		for rest := want[1:]; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			_, err := b.Write(rest[:min(piece, len(rest))])
			require.NoError(t, err)
		}
		assert.EqualValues(t, len(want), b.Len())
		got, err := io.ReadAll(b.Reader())
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want[:2<<20], got))
	}

	var none *spool.Spooled
	none.Free()
	assert.Zero(t, none.Len())
	require.NoError(t, s.Close())
}

// A full disk is reported.
func TestNoRoom(t *testing.T) {
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, "/nonexistent")
	}
	var s spool.Spool
	b := s.Body()
	_, err := b.Write(make([]byte, 2<<20))
	require.Error(t, err)
	_, err = b.Start()
	assert.Error(t, err)
}
