package stores

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// CommonOptions are the flags for a context store that both peers use.
type CommonOptions struct {
	Store   string
	headers []string
	Archive bool
}

// Flags declares --common-store; for who sends messages also --common-header.
func (o *CommonOptions) Flags(f *pflag.FlagSet, sends bool) {
	f.StringVar(&o.Store, "common-store", "", "URL of a context store that the peer uses as well, to refer to what is "+
		"there: http[s]://HOST:PORT/PATH")
	f.BoolVar(&o.Archive, "archive", false,
		"leave what decodes recordings in the stores for good: not only while the session lasts")
	if sends {
		f.StringArrayVar(&o.headers, "common-header", nil,
			"{namespace}name of a header block that may go to --common-store when it recurs; may be given again")
	}
}

// Open opens the store as access says; nil if there is none. done closes it.
func (o *CommonOptions) Open(
	ctx context.Context, g *command.Global, access *StoreOptions,
) (common *unchanging.CommonStore, done func(), err error) {
	if common, err = o.Read(); common == nil {
		return nil, func() {}, err
	}
	if common.Store, err = access.openEngine(ctx, g, o.Store, engines.Options{}); err != nil {
		return nil, nil, fmt.Errorf("--common-store: %w", err)
	}
	return common, func() { _ = common.Store.Close() }, nil
}

// Check checks the flags, without opening the store.
func (o *CommonOptions) Check() error {
	common, err := o.Read()
	if err != nil || common == nil {
		return err
	}
	if err := engines.Check(common.URL); err != nil {
		return fmt.Errorf("--common-store: %w", err)
	}
	return nil
}

// Read is Open without opening the store; nil if there is none.
func (o *CommonOptions) Read() (common *unchanging.CommonStore, err error) {
	if o.Store == "" {
		if len(o.headers) > 0 {
			return nil, exit.Usagef("", "--common-header is for --common-store")
		}
		return nil, nil
	}
	if !strings.Contains(o.Store, "://") {
		return nil, exit.Usagef("hhfr context serve serves a store by a URL",
			"--common-store %s is no URL: the peer could not use it", o.Store)
	}
	common = &unchanging.CommonStore{URL: o.Store}
	for _, text := range o.headers {
		name, err := negotiate.ParseHeaderName(text)
		if err != nil {
			return nil, exit.Usagef("write {http://www.w3.org/2005/08/addressing}To, with the namespace in braces",
				"--common-header: %w", err)
		}
		common.Headers = append(common.Headers, name)
	}
	return common, nil
}

// CheckTransport returns why a transport cannot be offered; nil if it can.
func (o *CommonOptions) CheckTransport(transport string) error {
	if transport == flags.PlainTransport && o.Store == "" {
		return exit.Usagef("plain SOAP alone needs no session", "--transport http is for --common-store")
	}
	return nil
}
