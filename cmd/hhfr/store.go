package main

import (
	"context"
	"log/slog"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
	"github.com/hhfr/hhfr/pkg/ctxstore/spare"
	"github.com/hhfr/hhfr/pkg/schema"
)

// openStore opens the --store of a command that has sessions. A full disk must not turn them into
// plain SOAP, so what can be recreated is then held in memory.
func openStore(ctx context.Context, spec string, log *slog.Logger) (ctxstore.Store, error) {
	store, err := engines.Open(ctx, spec, engines.Options{})
	if err != nil {
		return nil, err
	}
	return spare.New(store, spare.Config{Prefixes: []string{schema.URIPrefix, session.PlainPrefix}, Log: log}), nil
}
