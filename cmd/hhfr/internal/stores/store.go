// Package stores opens the stores that --store and --common-store name.
package stores

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/spare"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/schema"
)

// StoreOptions name a store, how it is accessed if it is a context service, and what it may take.
type StoreOptions struct {
	Spec                     string
	token, cacert, cert, key string
	Size                     flags.Size
}

// WrittenFlags declares --store of a command that writes it, and how much space it may take.
func (s *StoreOptions) WrittenFlags(f *pflag.FlagSet, value string) {
	s.AboutFlags(f, value, "context store: ")
}

// AboutFlags are [StoreOptions.WrittenFlags] with a help text of their own before the forms of
// names.
func (s *StoreOptions) AboutFlags(f *pflag.FlagSet, value, about string) {
	s.flags(f, value, about)
	f.Var(&s.Size, "store-size", fmt.Sprintf("space that --store may take; default %s for a file or folder, "+
		"else %s", flags.SizeText(engines.FileBytes), flags.SizeText(ctxstore.DefaultMaxBytes)))
}

// ServerFlags are those of a command that listens.
func (s *StoreOptions) ServerFlags(f *pflag.FlagSet) {
	s.AboutFlags(f, "", "context store; none: a folder of this user, for the command and --listen, of "+
		flags.SizeText(ctxstore.DefaultMaxBytes)+" at most, or mem: with port 0: ")
}

// Flags declares --store, and how a context service is accessed.
func (s *StoreOptions) Flags(f *pflag.FlagSet, value string) { s.flags(f, value, "context store: ") }

func (s *StoreOptions) flags(f *pflag.FlagSet, value, about string) {
	f.StringVar(&s.Spec, "store", value, about+strings.Join(engines.Forms(), " or "))
	f.StringVar(&s.token, "store-token", "", "file with the token for a context service or NATS servers")
	f.StringVar(&s.cacert, "store-cacert", "", "PEM file of certificates to trust for a store over TLS")
	f.StringVar(&s.cert, "store-cert", "", "PEM file with the certificate to show to a store over TLS")
	f.StringVar(&s.key, "store-key", "", "PEM file with the key of --store-cert")
}

// Check checks what a store of this name would be opened with, without opening it.
func (s *StoreOptions) Check(system resolve.System, name string) error {
	if _, _, err := s.Access(system); err != nil {
		return err
	}
	return engines.Check(name)
}

// openEngine opens a store as it is.
func (s *StoreOptions) openEngine(
	ctx context.Context, g *command.Global, spec string, o engines.Options,
) (ctxstore.Store, error) {
	var err error
	if o.Token, o.TLS, err = s.Access(g.System); err != nil {
		return nil, err
	}
	store, err := engines.Open(ctx, spec, o)
	if err == nil {
		warnOfExposure(g, spec)
	}
	return store, err
}

// warnOfExposure warns of a store that other users may change.
func warnOfExposure(g *command.Global, spec string) {
	path, mode := engines.Exposed(spec)
	if path == "" {
		return
	}
	what, private := "file", 0o600
	if mode.IsDir() {
		what, private = "folder", 0o700
	}
	g.Warn("other users may write the %s %s of the store (mode %04o), and so read or change what it is "+
		"trusted with: chmod %o %[2]s", what, path, mode.Perm(), private)
}

// OpenWritten opens the --store of a command that writes it.
func (s *StoreOptions) OpenWritten(ctx context.Context, g *command.Global) (ctxstore.Store, error) {
	return s.openEngine(ctx, g, s.Spec, engines.Options{MaxBytes: int64(s.Size)})
}

// OpenReadOnly opens the --store of a command that only reads it, which must exist; nil for none.
func (s *StoreOptions) OpenReadOnly(ctx context.Context, g *command.Global) (ctxstore.Store, error) {
	if s.Spec == "" {
		return nil, nil
	}
	return s.openEngine(ctx, g, s.Spec, engines.Options{ReadOnly: true})
}

// Access reads the files.
func (s *StoreOptions) Access(system resolve.System) (token string, c *tls.Config, err error) {
	if s.token != "" {
		tokens, err := trust.TokensIn("--store-token", s.token)
		if err != nil {
			return "", nil, err
		}
		token = tokens[0]
	}
	c = &tls.Config{}
	if c.RootCAs, err = trust.TermuxRoots(system); err != nil {
		return "", nil, err
	}
	if s.cacert != "" {
		if c.RootCAs, err = trust.Certificates("--store-cacert", s.cacert); err != nil {
			return "", nil, err
		}
	}
	c.Certificates, err = trust.KeyPair("--store-cert", s.cert, "--store-key", s.key)
	return token, c, err
}

// Open opens the --store of a command that has sessions. A full disk must not turn them into plain
// SOAP, so what can be recreated is then held in memory.
func (s *StoreOptions) Open(ctx context.Context, g *command.Global) (ctxstore.Store, error) {
	store, err := s.OpenWritten(ctx, g)
	if err != nil {
		return nil, err
	}
	return WithSpare(store, g.Logger()), nil
}

// WithSpare is a store that holds in memory what can be recreated when its disk is full.
func WithSpare(store ctxstore.Store, log *slog.Logger) ctxstore.Store {
	remade := []string{schema.URIPrefix, session.PlainPrefix, session.UsedPrefix}
	return spare.New(store, spare.Config{Prefixes: remade, Log: log})
}
