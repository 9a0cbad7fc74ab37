package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/spare"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/schema"
)

// storeAccess are the flags for a store that is a context service.
type storeAccess struct{ token, cacert, cert, key string }

// storeFlags declares --store, and how a context service is accessed.
func (g *global) storeFlags(f *pflag.FlagSet, spec *string, value, about string) {
	f.StringVar(spec, "store", value, about+strings.Join(engines.Forms(), " or "))
	a := &g.storeAccess
	f.StringVar(&a.token, "store-token", "", "file with the token for a context service or NATS servers")
	f.StringVar(&a.cacert, "store-cacert", "", "PEM file of certificates to trust for a store over TLS")
	f.StringVar(&a.cert, "store-cert", "", "PEM file with the certificate to show to a store over TLS")
	f.StringVar(&a.key, "store-key", "", "PEM file with the key of --store-cert")
}

// openEngine opens a store as it is.
func (g *global) openEngine(ctx context.Context, spec string, readOnly bool) (ctxstore.Store, error) {
	o := engines.Options{ReadOnly: readOnly}
	var err error
	if o.Token, o.TLS, err = g.storeAccess.open(g.system); err != nil {
		return nil, err
	}
	return engines.Open(ctx, spec, o)
}

// open reads the files.
func (a *storeAccess) open(system resolve.System) (token string, c *tls.Config, err error) {
	if a.token != "" {
		tokens, err := tokensIn("--store-token", a.token)
		if err != nil {
			return "", nil, err
		}
		token = tokens[0]
	}
	c = &tls.Config{}
	if c.RootCAs, err = termuxRoots(system); err != nil {
		return "", nil, err
	}
	if a.cacert != "" {
		if c.RootCAs, err = certificates("--store-cacert", a.cacert); err != nil {
			return "", nil, err
		}
	}
	c.Certificates, err = keyPair("--store-cert", a.cert, "--store-key", a.key)
	return token, c, err
}

// openStore opens the --store of a command that has sessions. A full disk must not turn them into
// plain SOAP, so what can be recreated is then held in memory.
func (g *global) openStore(ctx context.Context, spec string) (ctxstore.Store, error) {
	store, err := g.openEngine(ctx, spec, false)
	if err != nil {
		return nil, err
	}
	return withSpare(store, g.logger()), nil
}

func withSpare(store ctxstore.Store, log *slog.Logger) ctxstore.Store {
	remade := []string{schema.URIPrefix, session.PlainPrefix, session.UsedPrefix}
	return spare.New(store, spare.Config{Prefixes: remade, Log: log})
}
