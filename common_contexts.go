package hhfr

import (
	"errors"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// CommonContexts is a context store that both peers use. Header blocks go there once, sealed, and
// messages refer to them; services and callers see every message whole. A store that fails costs
// bytes: messages travel whole then.
type CommonContexts struct {
	// URL names the store, in the same way at both peers.
	URL string
	// Store is that store, a context service for example (package wscontext).
	Store ctxstore.Store
	// Headers are names, {namespace}local, of header blocks that may go there once they recur;
	// those about security never do. nil: none but Config.Unchanging. A server has none.
	Headers []string
}

// opened returns the store as sessions and responders have it; nil if c is.
func (c *CommonContexts) opened() (*unchanging.CommonStore, error) {
	if c == nil {
		return nil, nil
	}
	if c.URL == "" || c.Store == nil {
		return nil, invalid(errors.New("a common store needs a URL and a Store"))
	}
	if err := negotiate.CheckText(c.URL); err != nil {
		return nil, invalid(err)
	}
	common := &unchanging.CommonStore{URL: c.URL, Store: c.Store}
	for _, text := range c.Headers {
		name, err := negotiate.ParseHeaderName(text)
		if err != nil {
			return nil, invalid(err)
		}
		common.Headers = append(common.Headers, name)
	}
	return common, nil
}
