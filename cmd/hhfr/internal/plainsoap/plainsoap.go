// Package plainsoap has what carries plain SOAP of a command other than as XML over HTTP: queues,
// and Fast Infoset.
package plainsoap

import (
	"crypto/tls"
	"errors"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/negotiated"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queues"
	"github.com/hhfr/hhfr/internal/soapjms"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// PlainBinding are the options of both.
type PlainBinding struct {
	Queue       queues.QueueOptions
	FastInfoset negotiated.FastInfoset
}

// Flags declares those of both.
func (b *PlainBinding) Flags(f *pflag.FlagSet) {
	b.Queue.Flag(f)
	b.FastInfoset.Flag(f)
}

// CheckAddress returns why the flags do not go with the address; nil if they do.
func (b *PlainBinding) CheckAddress() error {
	if b.Queue.Address != nil && b.FastInfoset != "" {
		return exit.Usagef("", "--fast-infoset is for services of HTTP, not of queues")
	}
	return nil
}

// QueueClient is of the queue of the address. Its messages go as content of hhfr where named says
// that store is one that both ends have. The caller closes it.
func (b *PlainBinding) QueueClient(
	g *command.Global, oneWay bool, secure *tls.Config, named string, store ctxstore.Store,
) (*soapjms.Requester, error) {
	return b.Queue.Client(g, oneWay, secure, nil, queues.ShapesOf(named, store))
}

// MayBeHandled reports whether an error is that a request at a queue has no reply.
func MayBeHandled(err error) bool { return errors.Is(err, &soapjms.Error{Code: soapjms.NoReply}) }
