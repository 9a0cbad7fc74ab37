package wscontext_test

import (
	"testing"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

// A service is a store like any other, over HTTP as it is.
func TestConformance(t *testing.T) {
	var last *served
	storetest.Run(t, storetest.Subject{
		Open: func(t testing.TB, o storetest.Options) ctxstore.Store {
			last, _ = serveMemory(t, memory.Config{MaxBytes: o.MaxBytes})
			return last.open(t)
		},
		Again: func(t testing.TB, _ storetest.Options) ctxstore.Store { return last.open(t) },
	})
}
