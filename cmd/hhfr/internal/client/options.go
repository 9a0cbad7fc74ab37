// Package client is a command as a client of a service: the flags of its session, and what it has
// open for that.
package client

import (
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/negotiated"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// ClientOptions are the flags of commands that open sessions; a command has those that it declares.
type ClientOptions struct {
	URL, Link, Representation, Transport, Mode, Assurance, ReplySchema string
	Fields, AllowHost, Nodes, HeaderFiles                              []string
	RequireHHFR, Plain, AllowCleartext, Ordered, Resume                bool
	Concurrency                                                        int
	Store                                                              stores.StoreOptions
	Record                                                             recording.RecordOptions
	Schema                                                             description.SchemaSource
	TLS                                                                trust.ClientTLS
	Common                                                             stores.CommonOptions
	Sync                                                               flags.Size
	Without                                                            flags.Stages
	FastInfoset                                                        negotiated.FastInfoset
	FlushDelay, Reconnect, Negotiate, Remember                         time.Duration
}

// Flags declares those of every command that opens sessions.
func (o *ClientOptions) Flags(f *pflag.FlagSet) {
	flags.Fields(f, &o.Fields)
	o.Store.WrittenFlags(f, stores.MemoryStore)
	flags.AllowHost(f, &o.AllowHost)
	o.TLS.Flags(f)
}

// SendFlags declares those of commands that send messages, of which so many are in flight at once
// by default.
func (o *ClientOptions) SendFlags(f *pflag.FlagSet, concurrency int) {
	f.IntVar(&o.Concurrency, "concurrency", concurrency, "exchanges in flight at once")
	o.Record.Flags(f, "write all traffic to this pcapng file")
	flags.Sync(f, &o.Sync)
}

// OfferFlags declares those of what is agreed on.
func (o *ClientOptions) OfferFlags(f *pflag.FlagSet) {
	flags.AllowCleartext(f, &o.AllowCleartext)
	flags.Delivery(f, &o.Assurance, &o.Ordered)
	f.StringVar(&o.Representation, "representation", "",
		"binary or xml; empty: whichever the peer accepts, binary first")
	f.StringVar(&o.Transport, "transport", "tcp",
		"tcp, in TLS for an https URL; udp: reliable sequences over datagrams; or http: plain SOAP, with references "+
			"to --common-store")
	f.BoolVar(&o.RequireHHFR, "require-hhfr", false, "fail (exit 3) rather than use plain SOAP")
	o.Schema.Flags(f)
	o.Schema.AnnotationFlag(f)
	f.StringVar(&o.ReplySchema, "reply-schema", "", "HHFR Schema of the replies, a file")
	flags.UnchangingHeaders(f, &o.HeaderFiles)
	o.Common.Flags(f, true)
}

// CheckSending checks what [ClientOptions.SendFlags] declares.
func (o *ClientOptions) CheckSending() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 4096:
		return exit.Usagef("", "--concurrency is 1 to 4096")
	case o.Sync > 1<<20:
		return exit.Usagef("", "--sync is at most 1MiB")
	}
	return nil
}

// CheckOffer checks the URL and what is offered.
func (o *ClientOptions) CheckOffer() (*url.URL, error) {
	u, err := command.CheckURL("URL", o.URL)
	if err != nil {
		return nil, err
	}
	if err := flags.CheckMode(o.Mode); err != nil {
		return nil, err
	}
	if err := flags.CheckTransport(u, o.Transport, o.AllowCleartext); err != nil {
		return nil, err
	}
	if err := o.Common.CheckTransport(o.Transport); err != nil {
		return nil, err
	}
	if o.Assure() == 0 {
		return nil, exit.Usagef("", "--assurance is %s, not %s", strings.Join(flags.Assurances(), ", "), o.Assurance)
	}
	return u, flags.CheckFields(o.Fields)
}

// Assure is the assurance; 0: there is none of that name.
func (o *ClientOptions) Assure() wsrm.Assurance { return flags.ParseAssurance(o.Assurance) }

// Sequenced reports whether the messages are in a sequence.
func (o *ClientOptions) Sequenced() bool { return o.Kept() || o.Ordered }

// Kept reports whether the sequence is in the store, and can be continued by a later run.
func (o *ClientOptions) Kept() bool { return o.Assure() > wsrm.AtMostOnce }
