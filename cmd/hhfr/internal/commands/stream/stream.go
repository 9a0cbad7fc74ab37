// Package stream is hhfr stream.
package stream

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/outgoing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queues"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/reliable"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

type streamOptions struct {
	client.ClientOptions
	files           outgoing.FileMessages
	reliable        reliable.ReliableOptions
	queue           queues.QueueOptions
	saveDir, output string
	listen          bool
	timeout         time.Duration
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
			o.URL, o.files.Names = args[0], args[1:]
			return runStream(c.Context(), g, o)
		},
	}
	o.messageFlags(c.Flags())
	o.sessionFlags(c.Flags())
	o.deliveryFlags(c.Flags())
	command.OutputFlag(c, &o.output, "xml")
	return c
}

// takes checks the number of arguments.
func (o *streamOptions) takes(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return exit.Usagef("usage: "+c.UseLine(), "no URL given")
	case len(args) == 1 && !o.listen && !o.Kept() && o.reliable.Version == "":
		return exit.Usagef("name files with messages, or - for stdin; --listen needs none", "no FILE given")
	}
	return nil
}

// messageFlags are those of what is sent, and of what becomes of replies.
func (o *streamOptions) messageFlags(f *pflag.FlagSet) {
	o.files.Flags(f)
	o.SendFlags(f, 32)
	flags.SaveDir(f, &o.saveDir)
	f.BoolVar(&o.listen, "listen", false,
		"keep running and print server-initiated messages; needs no FILE, implies --require-hhfr")
	f.DurationVar(&o.timeout, "timeout", 0, "give up after this time in total; 0: never")
}

// sessionFlags are those of what is agreed with the service, and of the way to it.
func (o *streamOptions) sessionFlags(f *pflag.FlagSet) {
	o.Flags(f)
	o.OfferFlags(f)
	o.queue.Flag(f)
	o.FastInfoset.Flag(f)
	flags.Mode(f, &o.Mode, "met if --store remembers a session, otherwise declared if the WSDL of --schema "+
		"declares a stream, otherwise explicit for what only an offer can express, otherwise first-call")
	network.LinkFlag(f, &o.Link, "")
	flags.FlushDelay(f, &o.FlushDelay)
	flags.Without(f, &o.Without)
	f.DurationVar(&o.Negotiate, "negotiate-timeout", negotiate.DefaultTimeout,
		"use plain SOAP if there is no stream after this time")
	f.DurationVar(&o.Remember, "remember", session.DefaultRememberFor,
		"how long the store remembers that a service uses plain SOAP and gets no offer; 0: always offer")
}

// deliveryFlags are those of what is guaranteed, and of what happens when a stream breaks.
func (o *streamOptions) deliveryFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.Nodes, "node", nil, "a further URL of the service, of a node that shares a context store with "+
		"it: when one dies, the next goes on; may be given again")
	f.DurationVar(&o.Reconnect, "reconnect", 30*time.Second,
		"how long to negotiate anew when the stream breaks, before using plain SOAP; with an assurance or --ordered "+
			"also how long to wait for the first one; 0: not at all")
	f.BoolVar(&o.Resume, "resume", false,
		"resume an interrupted run of these FILEs: what it had accepted is left out; with at-least-once or "+
			"exactly-once")
	o.reliable.Flags(f)
}

func (o *streamOptions) check() (err error) {
	if o.URL, err = o.queue.Parse(o.URL); err != nil {
		return err
	}
	if o.queue.Address != nil {
		o.Plain = true
		if o.RequireHHFR || o.Sequenced() || o.Mode != string(negotiate.Auto) || o.listen ||
			o.reliable.Version != "" || len(o.Nodes) > 0 {
			return exit.Usagef("", "at a queue there is plain SOAP alone: --require-hhfr, --assurance, --ordered, "+
				"--mode, --listen, --soap-rm and --node do not go with it")
		}
	}
	if o.FastInfoset != "" {
		o.Plain = true
		if o.RequireHHFR || o.Sequenced() || o.Mode != string(negotiate.Auto) || o.listen ||
			o.reliable.Version != "" || o.queue.Address != nil || o.Transport != "tcp" {
			return exit.Usagef("", "Fast Infoset is of plain SOAP in HTTP: --require-hhfr, --assurance, --ordered, "+
				"--mode, --listen, --soap-rm, --transport and queues do not go with --fast-infoset")
		}
	}
	switch {
	case o.FastInfoset.Check() != nil:
		return o.FastInfoset.Check()
	case o.Representation != "" && o.Representation != "binary" && o.Representation != "xml":
		return exit.Usagef("", "--representation is binary or xml, not %s", o.Representation)
	case o.Reconnect < 0 || o.Remember < 0 || o.timeout < 0:
		return exit.Usagef("", "--reconnect, --remember and --timeout are 0 or more")
	case o.Negotiate <= 0:
		return exit.Usagef("", "--negotiate-timeout is more than 0")
	case o.FlushDelay < 0:
		return exit.Usage(flags.ErrNegativeFlushDelay, "")
	}
	if err := o.CheckSending(); err != nil {
		return err
	}
	u, err := o.CheckOffer()
	if err != nil {
		return err
	}
	switch {
	case o.Resume && !o.Kept():
		return exit.Usagef("", "--resume goes with --assurance at-least-once or exactly-once")
	case o.Assure() == wsrm.ExactlyOnce && o.Store.Spec == stores.MemoryStore:
		return exit.Usagef("name one: --store bolt:FILE", "exactly-once needs a store that outlives the process")
	case o.Sequenced() && o.listen:
		return exit.Usagef("", "--listen goes with at-most-once, without --ordered: server-initiated messages "+
			"are in no sequence")
	case o.reliable.Version != "" && o.listen:
		return exit.Usagef("", "--listen does not go with --soap-rm, which uses plain SOAP")
	}
	return cmp.Or(o.reliable.Check(&o.ClientOptions), o.files.Check(u, o.Fields))
}
