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

// storeFlags name a store, how it is accessed if it is a context service, and what it may take.
type storeFlags struct {
	spec                     string
	token, cacert, cert, key string
	size                     size
}

// writtenFlags declares --store of a command that writes it, and how much space it may take.
func (s *storeFlags) writtenFlags(f *pflag.FlagSet, value, about string) {
	s.flags(f, value, about)
	f.Var(&s.size, "store-size", fmt.Sprintf("space that --store may take; default %s for a file or folder, "+
		"else %s", sizeText(engines.FileBytes), sizeText(ctxstore.DefaultMaxBytes)))
}

// serverFlags are those of a command that listens.
func (s *storeFlags) serverFlags(f *pflag.FlagSet) {
	s.writtenFlags(f, "", "context store; none: a folder of this user, for the command and --listen, of "+
		sizeText(ctxstore.DefaultMaxBytes)+" at most, or mem: with port 0: ")
}

// flags declares --store, and how a context service is accessed.
func (s *storeFlags) flags(f *pflag.FlagSet, value, about string) {
	f.StringVar(&s.spec, "store", value, about+strings.Join(engines.Forms(), " or "))
	f.StringVar(&s.token, "store-token", "", "file with the token for a context service or NATS servers")
	f.StringVar(&s.cacert, "store-cacert", "", "PEM file of certificates to trust for a store over TLS")
	f.StringVar(&s.cert, "store-cert", "", "PEM file with the certificate to show to a store over TLS")
	f.StringVar(&s.key, "store-key", "", "PEM file with the key of --store-cert")
}

// openEngine opens a store as it is.
func (s *storeFlags) openEngine(
	ctx context.Context, g *global, spec string, o engines.Options,
) (ctxstore.Store, error) {
	var err error
	if o.Token, o.TLS, err = s.access(g.system); err != nil {
		return nil, err
	}
	store, err := engines.Open(ctx, spec, o)
	if err == nil {
		warnOfExposure(g, spec)
	}
	return store, err
}

// warnOfExposure warns of a store that other users may change.
func warnOfExposure(g *global, spec string) {
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
func (s *storeFlags) openWritten(ctx context.Context, g *global) (ctxstore.Store, error) {
	return s.openEngine(ctx, g, s.spec, engines.Options{MaxBytes: int64(s.size)})
}

// openReadOnly opens the --store of a command that only reads it, which must exist; nil for none.
func (s *storeFlags) openReadOnly(ctx context.Context, g *global) (ctxstore.Store, error) {
	if s.spec == "" {
		return nil, nil
	}
	return s.openEngine(ctx, g, s.spec, engines.Options{ReadOnly: true})
}

// access reads the files.
func (s *storeFlags) access(system resolve.System) (token string, c *tls.Config, err error) {
	if s.token != "" {
		tokens, err := tokensIn("--store-token", s.token)
		if err != nil {
			return "", nil, err
		}
		token = tokens[0]
	}
	c = &tls.Config{}
	if c.RootCAs, err = termuxRoots(system); err != nil {
		return "", nil, err
	}
	if s.cacert != "" {
		if c.RootCAs, err = certificates("--store-cacert", s.cacert); err != nil {
			return "", nil, err
		}
	}
	c.Certificates, err = keyPair("--store-cert", s.cert, "--store-key", s.key)
	return token, c, err
}

// open opens the --store of a command that has sessions. A full disk must not turn them into plain
// SOAP, so what can be recreated is then held in memory.
func (s *storeFlags) open(ctx context.Context, g *global) (ctxstore.Store, error) {
	store, err := s.openWritten(ctx, g)
	if err != nil {
		return nil, err
	}
	return withSpare(store, g.logger()), nil
}

func withSpare(store ctxstore.Store, log *slog.Logger) ctxstore.Store {
	remade := []string{schema.URIPrefix, session.PlainPrefix, session.UsedPrefix}
	return spare.New(store, spare.Config{Prefixes: remade, Log: log})
}
