package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Subject{
		Open: func(_ testing.TB, o storetest.Options) ctxstore.Store {
			return memory.New(memory.Config{MaxBytes: o.MaxBytes})
		},
	})
}

func TestShapeShare(t *testing.T) {
	s := memory.New(memory.Config{MaxBytes: 1 << 30})
	storetest.ShapeShare(t, s)
	require.NoError(t, s.Close())
}

// Entries that expired take no memory for long: ever more of them are as many as few.
func TestExpiredEntriesAreDropped(t *testing.T) {
	const live = 600
	for _, count := range []int{10_000, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			s, most := memory.New(memory.Config{}), 0
			_, err := s.Put(t.Context(), "urn:kept", []byte("x"), ctxstore.PutOptions{})
			require.NoError(t, err)
			for n := range count {
				passing := ctxstore.PutOptions{TTL: live * time.Second}
				_, err := s.Put(t.Context(), fmt.Sprintf("urn:%d", n), []byte("x"), passing)
				require.NoError(t, err)
				time.Sleep(time.Second)
				most = max(most, s.Held())
			}
			assert.LessOrEqual(t, most, 1024+2*live)
			_, err = s.Get(t.Context(), "urn:kept")
			require.NoError(t, err)
			_, err = s.Get(t.Context(), fmt.Sprintf("urn:%d", count-live/2))
			require.NoError(t, err)
			require.NoError(t, s.Close())
		})
	}
}
