package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

type streamOptions struct {
	url                                                            string
	files                                                          []string
	repeat, concurrency                                            int
	record                                                         recordOptions
	store                                                          storeFlags
	representation, transport, mode, action, wrap, saveDir, output string
	link                                                           string
	fields, allowHost, nodes                                       []string
	requireHHFR, plain, oneWay, listen, allowCleartext             bool
	listening                                                      *serviceListener
	sync                                                           size
	flushDelay                                                     time.Duration
	without                                                        stages
	timeout, reconnect, negotiateTimeout, remember                 time.Duration
	replySchema                                                    string
	schema                                                         schemaSource
	// files of unchanging header blocks; the blocks
	headerFiles, headers []string
	tls                  clientTLS
	common               commonOptions
	assurance            string
	ordered, resume      bool
	soapRM, addressing   string // WS-ReliableMessaging in plain SOAP
	replies              replyPlace
}

func newStream(env Env, g *global) *cobra.Command {
	o := &streamOptions{sync: 1 << 20}
	c := &cobra.Command{
		Use:     "stream URL FILE…",
		Short:   "Send messages over a negotiated stream, or as plain SOAP where nobody agrees",
		Long:    streamHelp,
		Example: streamExamples,
		Args:    o.takes,
		RunE: func(c *cobra.Command, args []string) error {
			o.url, o.files = args[0], args[1:]
			return runStream(c.Context(), env, g, *o)
		},
	}
	o.messageFlags(c.Flags())
	o.sessionFlags(c.Flags(), g)
	o.deliveryFlags(c.Flags())
	outputFlag(c, &o.output, "text", "json", "xml")
	return c
}

// takes checks the number of arguments.
func (o *streamOptions) takes(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage(errors.New("no URL given"), "usage: "+c.UseLine())
	case len(args) == 1 && !o.listen && !o.kept() && o.soapRM == "":
		return usage(errors.New("no FILE given"), "name files with messages, or - for stdin; --listen needs none")
	}
	return nil
}

// messageFlags are those of what is sent, and of what becomes of replies.
func (o *streamOptions) messageFlags(f *pflag.FlagSet) {
	f.IntVar(&o.repeat, "repeat", 1, "how many times to send all the FILEs")
	f.IntVar(&o.concurrency, "concurrency", 32, "exchanges in flight at once")
	f.StringVar(&o.action, "action", "", "SOAPAction, or action parameter in SOAP 1.2")
	fieldsFlag(f, &o.fields, "each message and the offer")
	f.StringVar(&o.wrap, "wrap", "", "put each FILE, which is a body, into an envelope of SOAP 1.1 or 1.2")
	f.StringVar(&o.saveDir, "save-dir", "", "write messages there: 000001-request.xml, 000001-reply.xml, …")
	o.record.flags(f, "write all traffic to this pcapng file")
	f.BoolVar(&o.oneWay, "one-way", false, "send messages that expect no reply")
	f.BoolVar(&o.listen, "listen", false,
		"keep running and print server-initiated messages; needs no FILE, implies --require-hhfr")
	f.DurationVar(&o.timeout, "timeout", 0, "give up after this time in total; 0: never")
}

// sessionFlags are those of what is agreed with the service, and of the way to it.
func (o *streamOptions) sessionFlags(f *pflag.FlagSet, g *global) {
	f.StringVar(&o.representation, "representation", "",
		"binary or xml; empty: whichever the peer accepts, binary first")
	f.StringVar(&o.transport, "transport", "tcp",
		"tcp, in TLS for an https URL; udp: reliable sequences over datagrams; or http: plain SOAP, with references "+
			"to --common-store")
	modeFlag(f, &o.mode, "met if --store remembers a session, otherwise declared if the WSDL of --schema "+
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
	o.store.writtenFlags(f, "mem:", "context store; all but mem: store shapes for later sessions: ")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"a host, besides that of the URL, that the answer may name for the stream")
	f.BoolVar(&o.requireHHFR, "require-hhfr", false, "fail (exit 3) rather than use plain SOAP")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	flushDelayFlag(f, &o.flushDelay)
	withoutFlag(f, &o.without, "")
	f.DurationVar(&o.negotiateTimeout, "negotiate-timeout", negotiate.DefaultTimeout,
		"use plain SOAP if there is no stream after this time")
	f.DurationVar(&o.remember, "remember", session.DefaultRememberFor,
		"how long the store remembers that a service uses plain SOAP and gets no offer; 0: always offer")
	o.schema.flags(f,
		"WSDL or XML Schema of the service, or HHFR Schema of the requests: their types are taken from it")
	o.schema.annotationFlag(f)
	f.StringVar(&o.replySchema, "reply-schema", "", "HHFR Schema of the replies, a file")
	headerFlag(f, &o.headerFiles)
	o.common.flags(f, true)
	o.tls.flags(f, "URL")
}

// deliveryFlags are those of what is guaranteed, and of what happens when a stream breaks.
func (o *streamOptions) deliveryFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.nodes, "node", nil, "a further URL of the service, of a node that shares a context store with "+
		"it: when one dies, the next goes on; may be given again")
	f.DurationVar(&o.reconnect, "reconnect", 30*time.Second,
		"how long to negotiate anew when the stream breaks, before using plain SOAP; with an assurance or --ordered "+
			"also how long to wait for the first one; 0: not at all")
	f.StringVar(&o.assurance, "assurance", wsrm.AtMostOnce.String(),
		"delivery guarantee of each message: "+strings.Join(assurances(), ", "))
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
		return usage(errors.New("--repeat is at least 1"), "")
	case o.concurrency < 1 || o.concurrency > 4096:
		return usage(errors.New("--concurrency is 1 to 4096"), "")
	case o.representation != "" && o.representation != "binary" && o.representation != "xml":
		return usage(errors.New("--representation is binary or xml, not "+o.representation), "")
	case o.reconnect < 0 || o.remember < 0 || o.timeout < 0:
		return usage(errors.New("--reconnect, --remember and --timeout are 0 or more"), "")
	case o.negotiateTimeout <= 0:
		return usage(errors.New("--negotiate-timeout is more than 0"), "")
	case checkMode(o.mode) != nil:
		return checkMode(o.mode)
	case o.sync > 1<<20:
		return usage(errors.New("--sync is at most 1MiB"), "")
	case o.flushDelay < 0:
		return usage(errNegativeFlushDelay, "")
	case o.wrap != "" && o.wrap != "1.1" && o.wrap != "1.2":
		return usage(errors.New("--wrap is 1.1 or 1.2, not "+o.wrap), "")
	}
	u, err := checkURL("URL", o.url)
	if err != nil {
		return err
	}
	if err := checkTransport(u, o.transport, o.allowCleartext); err != nil {
		return err
	}
	if err := o.common.checkTransport(o.transport); err != nil {
		return err
	}
	if err := o.checkAssurance(); err != nil {
		return err
	}
	if err := o.checkReliable(); err != nil {
		return err
	}
	if err := checkFields(o.fields); err != nil {
		return err
	}
	if _, err := sender.RequestHead("/", nil, o.action, nil); err != nil {
		return usage(fmt.Errorf("--action: %w", err), "")
	}
	if slices.Contains(o.files, "-") && o.repeat > 1 {
		return usage(errors.New("- can be read once only"), "leave --repeat out, or name files")
	}
	return sendable(o.files)
}

// sendable checks files before anything is sent, as far as possible.
func sendable(files []string) error {
	for _, name := range files {
		if name == "-" {
			continue
		}
		if err := readable(name); err != nil {
			return err
		}
	}
	return once(files)
}

func readable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return usage(fmt.Errorf("%s is a folder", name), "name its files: "+filepath.Join(name, "*.xml"))
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}
