package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// commonOptions are the flags for a context store that both peers use.
type commonOptions struct {
	store   string
	headers []string
	archive bool
}

// flags declares --common-store; for who sends messages also --common-header.
func (o *commonOptions) flags(f *pflag.FlagSet, sends bool) {
	f.StringVar(&o.store, "common-store", "", "URL of a context store that the peer uses as well, to refer to what is "+
		"there: http[s]://HOST:PORT/PATH")
	keeps := "--store"
	if sends {
		keeps += " and --common-store"
	}
	f.BoolVar(&o.archive, "archive", false,
		"keep in "+keeps+" what decodes recordings, for good: not only while the session lasts")
	if sends {
		f.StringArrayVar(&o.headers, "common-header", nil,
			"{namespace}name of a header block that may go to --common-store when it recurs; may be given again")
	}
}

// open opens the store as access says; nil if there is none. done closes it.
func (o *commonOptions) open(
	ctx context.Context, g *global, access *storeFlags,
) (common *unchanging.CommonStore, done func(), err error) {
	if common, err = o.read(); common == nil {
		return nil, func() {}, err
	}
	if common.Store, err = access.openEngine(ctx, g, o.store, engines.Options{}); err != nil {
		return nil, nil, fmt.Errorf("--common-store: %w", err)
	}
	return common, func() { _ = common.Store.Close() }, nil
}

// read is open without opening the store; nil if there is none.
func (o *commonOptions) read() (common *unchanging.CommonStore, err error) {
	if o.store == "" {
		if len(o.headers) > 0 {
			return nil, usage(errors.New("--common-header is for --common-store"), "")
		}
		return nil, nil
	}
	if !strings.Contains(o.store, "://") {
		return nil, usage(fmt.Errorf("--common-store %s is no URL: the peer could not use it", o.store),
			"hhfr context serve serves a store by a URL")
	}
	common = &unchanging.CommonStore{URL: o.store}
	for _, text := range o.headers {
		name, err := negotiate.ParseHeaderName(text)
		if err != nil {
			return nil, usage(fmt.Errorf("--common-header: %w", err),
				"write {http://www.w3.org/2005/08/addressing}To, with the namespace in braces")
		}
		common.Headers = append(common.Headers, name)
	}
	return common, nil
}

// plainTransport is the value of --transport for plain SOAP with references.
const plainTransport = "http"

// checkTransport returns why a transport cannot be offered; nil if it can.
func (o *commonOptions) checkTransport(transport string) error {
	if transport == plainTransport && o.store == "" {
		return usage(errors.New("--transport http is for --common-store"), "plain SOAP alone needs no session")
	}
	return nil
}
