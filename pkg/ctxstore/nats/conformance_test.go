package nats_test

import (
	"testing"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

func TestConformance(t *testing.T) {
	var last served
	again := func(t testing.TB, o storetest.Options) ctxstore.Store {
		return last.open(t, nats.Config{MaxBytes: o.MaxBytes})
	}
	storetest.Run(t, storetest.Subject{
		Open: func(t testing.TB, o storetest.Options) ctxstore.Store {
			last = serve(t)
			return again(t, o)
		},
		Again: again,
	})
}
