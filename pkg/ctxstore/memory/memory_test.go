package memory_test

import (
	"testing"

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
