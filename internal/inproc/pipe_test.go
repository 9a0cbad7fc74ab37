package inproc_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPipeCarriesEverythingInAnyPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 100000)
	for i := range want {
		want[i] = byte(rnd.Uint32())
	}
	a, b := inproc.Pipe(97)
	sizes := make([]int, 5000)
	for i := range sizes {
		sizes[i] = rnd.IntN(300)
	}
	go func() {
		rest := want
		for i := 0; len(rest) > 0; i++ {
			n := min(sizes[i%len(sizes)], len(rest))
			if k, err := a.Write(rest[:n]); err != nil || k != n {
				break
			}
			rest = rest[n:]
		}
		_ = a.Close()
	}()
	var got bytes.Buffer
	p := make([]byte, 150)
	for {
		n, err := b.Read(p[:1+rnd.IntN(149)])
		got.Write(p[:n])
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
	}
	assert.Equal(t, want, got.Bytes())
	require.NoError(t, b.Close())
}

func TestDeadlinesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := inproc.Pipe(1)
		start := time.Now()
		require.NoError(t, a.SetDeadline(start.Add(time.Minute)))
		n, err := a.Write([]byte("xy"))
		assert.Equal(t, 1, n)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(start))
		_, err = a.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Minute)))
		require.NoError(t, a.SetWriteDeadline(time.Time{}))
		go func() { _, _ = io.ReadAll(b) }()
		_, err = a.Write(make([]byte, 100))
		require.NoError(t, err)
		require.NoError(t, a.Close())
	})
}

func TestWriteToAClosedEnd(t *testing.T) {
	a, b := inproc.Pipe(0)
	require.NoError(t, b.Close())
	_, err := a.Write([]byte("x"))
	assert.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = b.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestDialWaitsForTheListenerNoLongerThanItsContext(t *testing.T) {
	var tr inproc.Transport
	l, err := tr.Listen(t.Context(), "svc")
	require.NoError(t, err)
	assert.Equal(t, "inproc", l.Addr().Network())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tr.Dial(ctx, "svc")
	assert.ErrorIs(t, err, context.Canceled)
	errs := make(chan error, 1)
	go func() {
		_, err := tr.Dial(t.Context(), "svc")
		errs <- err
	}()
	require.NoError(t, l.Close())
	assert.Error(t, l.Close())
	assert.Error(t, <-errs)
}
