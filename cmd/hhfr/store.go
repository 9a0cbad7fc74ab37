package main

import (
	"context"
	"crypto/tls"
	"fmt"
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

// writtenStoreFlags declares --store of a command that writes it, and how much space it may take.
func (g *global) writtenStoreFlags(f *pflag.FlagSet, spec *string, value, about string) {
	g.storeFlags(f, spec, value, about)
	f.Var(&g.storeSize, "store-size", fmt.Sprintf("space that --store may take; default %s for a file or folder, "+
		"else %s", sizeText(engines.FileBytes), sizeText(ctxstore.DefaultMaxBytes)))
}

// serverStoreFlags are those of a command that listens.
func (g *global) serverStoreFlags(f *pflag.FlagSet, spec *string) {
	g.writtenStoreFlags(f, spec, "", "context store; none: a folder of this user, for the command and --listen, of "+
		sizeText(ctxstore.DefaultMaxBytes)+" at most, or mem: with port 0: ")
}

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
func (g *global) openEngine(ctx context.Context, spec string, o engines.Options) (ctxstore.Store, error) {
	var err error
	if o.Token, o.TLS, err = g.storeAccess.open(g.system); err != nil {
		return nil, err
	}
	store, err := engines.Open(ctx, spec, o)
	if err == nil {
		g.warnOfExposure(spec)
	}
	return store, err
}

// warnOfExposure warns of a store that other users may change.
func (g *global) warnOfExposure(spec string) {
	path, mode := engines.Exposed(spec)
	if path == "" {
		return
	}
	what, private := "file", 0o600
	if mode.IsDir() {
		what, private = "folder", 0o700
	}
	g.warn("other users may write the %s %s of the store (mode %04o), and so read or change what it is "+
		"trusted with: chmod %o %[2]s", what, path, mode.Perm(), private)
}

// openWritten opens the --store of a command that writes it.
func (g *global) openWritten(ctx context.Context, spec string) (ctxstore.Store, error) {
	return g.openEngine(ctx, spec, engines.Options{MaxBytes: int64(g.storeSize)})
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
	store, err := g.openWritten(ctx, spec)
	if err != nil {
		return nil, err
	}
	return withSpare(store, g.logger()), nil
}

func withSpare(store ctxstore.Store, log *slog.Logger) ctxstore.Store {
	remade := []string{schema.URIPrefix, session.PlainPrefix, session.UsedPrefix}
	return spare.New(store, spare.Config{Prefixes: remade, Log: log})
}
