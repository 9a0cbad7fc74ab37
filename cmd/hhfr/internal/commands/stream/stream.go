// Package stream is hhfr stream, and hhfr replay, which sends as it does.
package stream

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

type streamOptions struct {
	url                                                            string
	files                                                          []string
	repeat, concurrency                                            int
	record                                                         recording.RecordOptions
	store                                                          stores.StoreOptions
	representation, transport, mode, action, wrap, saveDir, output string
	link                                                           string
	fields, allowHost, nodes                                       []string
	requireHHFR, plain, oneWay, listen, allowCleartext             bool
	listening                                                      *serviceListener
	sync                                                           flags.Size
	flushDelay                                                     time.Duration
	without                                                        flags.Stages
	timeout, reconnect, negotiateTimeout, remember                 time.Duration
	replySchema                                                    string
	schema                                                         description.SchemaSource
	// files of unchanging header blocks; the blocks
	headerFiles, headers []string
	tls                  trust.ClientTLS
	common               stores.CommonOptions
	assurance            string
	ordered, resume      bool
	soapRM, addressing   string // WS-ReliableMessaging in plain SOAP
	replies              replyPlace
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	o := &streamOptions{}
	c := &cobra.Command{
		Use:     "stream URL FILE…",
		Short:   "Send messages over a negotiated stream, or as plain SOAP where nobody agrees",
		Long:    streamHelp,
		Example: streamExamples,
		Args:    o.takes,
		RunE: func(c *cobra.Command, args []string) error {
			o.url, o.files = args[0], args[1:]
			return runStream(c.Context(), g, *o)
		},
	}
	o.messageFlags(c.Flags())
	o.sessionFlags(c.Flags(), g)
	o.deliveryFlags(c.Flags())
	command.OutputFlag(c, &o.output, "xml")
	return c
}

// takes checks the number of arguments.
func (o *streamOptions) takes(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return exit.Usagef("usage: "+c.UseLine(), "no URL given")
	case len(args) == 1 && !o.listen && !o.kept() && o.soapRM == "":
		return exit.Usagef("name files with messages, or - for stdin; --listen needs none", "no FILE given")
	}
	return nil
}

// messageFlags are those of what is sent, and of what becomes of replies.
func (o *streamOptions) messageFlags(f *pflag.FlagSet) {
	f.IntVar(&o.repeat, "repeat", 1, "how many times to send all the FILEs")
	f.IntVar(&o.concurrency, "concurrency", 32, "exchanges in flight at once")
	f.StringVar(&o.action, "action", "", "SOAPAction, or action parameter in SOAP 1.2")
	flags.Fields(f, &o.fields, "each message and the offer")
	f.StringVar(&o.wrap, "wrap", "", "put each FILE, which is a body, into an envelope of SOAP 1.1 or 1.2")
	f.StringVar(&o.saveDir, "save-dir", "", "write messages there: 000001-request.xml, 000001-reply.xml, …")
	o.record.Flags(f, "write all traffic to this pcapng file")
	f.BoolVar(&o.oneWay, "one-way", false, "send messages that expect no reply")
	f.BoolVar(&o.listen, "listen", false,
		"keep running and print server-initiated messages; needs no FILE, implies --require-hhfr")
	f.DurationVar(&o.timeout, "timeout", 0, "give up after this time in total; 0: never")
}

// sessionFlags are those of what is agreed with the service, and of the way to it.
func (o *streamOptions) sessionFlags(f *pflag.FlagSet, g *command.Global) {
	f.StringVar(&o.representation, "representation", "",
		"binary or xml; empty: whichever the peer accepts, binary first")
	f.StringVar(&o.transport, "transport", "tcp",
		"tcp, in TLS for an https URL; udp: reliable sequences over datagrams; or http: plain SOAP, with references "+
			"to --common-store")
	flags.Mode(f, &o.mode, "met if --store remembers a session, otherwise declared if the WSDL of --schema "+
		"declares a stream, otherwise explicit for what only an offer can express, otherwise first-call")
	f.BoolVar(&o.allowCleartext, "allow-cleartext", false, "offer streams without encryption for an https URL, too")
	f.StringVar(
		&o.link,
		"link",
		"",
		"put an emulated link between here and the service: "+strings.Join(
			link.Names(),
			", ",
		)+"; with udp it may lose datagrams: 14k4,loss=2%,reorder=1%,seed=7",
	)
	o.store.WrittenFlags(f, "mem:", "context store; all but mem: store shapes for later sessions: ")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"a host, besides that of the URL, that the answer may name for the stream")
	f.BoolVar(&o.requireHHFR, "require-hhfr", false, "fail (exit 3) rather than use plain SOAP")
	flags.Sync(f, &o.sync)
	flags.FlushDelay(f, &o.flushDelay)
	flags.Without(f, &o.without, "")
	f.DurationVar(&o.negotiateTimeout, "negotiate-timeout", negotiate.DefaultTimeout,
		"use plain SOAP if there is no stream after this time")
	f.DurationVar(&o.remember, "remember", session.DefaultRememberFor,
		"how long the store remembers that a service uses plain SOAP and gets no offer; 0: always offer")
	o.schema.Flags(f,
		"WSDL or XML Schema of the service, or HHFR Schema of the requests: their types are taken from it")
	o.schema.AnnotationFlag(f)
	f.StringVar(&o.replySchema, "reply-schema", "", "HHFR Schema of the replies, a file")
	flags.UnchangingHeaders(f, &o.headerFiles)
	o.common.Flags(f, true)
	o.tls.Flags(f, "URL")
}

// deliveryFlags are those of what is guaranteed, and of what happens when a stream breaks.
func (o *streamOptions) deliveryFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.nodes, "node", nil, "a further URL of the service, of a node that shares a context store with "+
		"it: when one dies, the next goes on; may be given again")
	f.DurationVar(&o.reconnect, "reconnect", 30*time.Second,
		"how long to negotiate anew when the stream breaks, before using plain SOAP; with an assurance or --ordered "+
			"also how long to wait for the first one; 0: not at all")
	f.StringVar(&o.assurance, "assurance", wsrm.AtMostOnce.String(),
		"delivery guarantee of each message: "+strings.Join(flags.Assurances(), ", "))
	f.BoolVar(&o.ordered, "ordered", false,
		"messages are handled in the order in which they were sent; implies --require-hhfr")
	f.BoolVar(&o.resume, "resume", false,
		"resume an interrupted run of these FILEs: what it had accepted is left out; with at-least-once or "+
			"exactly-once")
	f.StringVar(&o.soapRM, "soap-rm", "",
		"send in a sequence of WS-ReliableMessaging over plain SOAP: 1.0, 1.1 or 1.2")
	f.StringVar(&o.addressing, "addressing", "",
		"WS-Addressing of --soap-rm: 2004/08 or 2005/08; empty: 2004/08 with 1.0, else 2005/08, or, if the service "+
			"refuses that, the other")
	o.replies.flags(f)
}

func (o *streamOptions) check() error {
	switch {
	case o.repeat < 1:
		return exit.Usagef("", "--repeat is at least 1")
	case o.concurrency < 1 || o.concurrency > 4096:
		return exit.Usagef("", "--concurrency is 1 to 4096")
	case o.representation != "" && o.representation != "binary" && o.representation != "xml":
		return exit.Usagef("", "--representation is binary or xml, not %s", o.representation)
	case o.reconnect < 0 || o.remember < 0 || o.timeout < 0:
		return exit.Usagef("", "--reconnect, --remember and --timeout are 0 or more")
	case o.negotiateTimeout <= 0:
		return exit.Usagef("", "--negotiate-timeout is more than 0")
	case flags.CheckMode(o.mode) != nil:
		return flags.CheckMode(o.mode)
	case o.sync > 1<<20:
		return exit.Usagef("", "--sync is at most 1MiB")
	case o.flushDelay < 0:
		return exit.Usage(flags.ErrNegativeFlushDelay, "")
	case o.wrap != "" && o.wrap != "1.1" && o.wrap != "1.2":
		return exit.Usagef("", "--wrap is 1.1 or 1.2, not %s", o.wrap)
	}
	u, err := command.CheckURL("URL", o.url)
	if err != nil {
		return err
	}
	if err := flags.CheckTransport(u, o.transport, o.allowCleartext); err != nil {
		return err
	}
	if err := o.common.CheckTransport(o.transport); err != nil {
		return err
	}
	if err := o.checkAssurance(); err != nil {
		return err
	}
	if err := o.checkReliable(); err != nil {
		return err
	}
	if err := flags.CheckFields(o.fields); err != nil {
		return err
	}
	if _, err := sender.RequestHead("/", nil, o.action, nil); err != nil {
		return exit.Usagef("", "--action: %w", err)
	}
	if slices.Contains(o.files, "-") && o.repeat > 1 {
		return exit.Usagef("leave --repeat out, or name files", "- can be read once only")
	}
	return input.Sendable(o.files)
}
