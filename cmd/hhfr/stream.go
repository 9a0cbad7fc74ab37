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

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

type streamOptions struct {
	url                                                                   string
	files                                                                 []string
	repeat, concurrency                                                   int
	record                                                                recordOptions
	representation, transport, mode, store, action, wrap, saveDir, output string
	link                                                                  string
	fields, allowHost, nodes                                              []string
	requireHHFR, plain, oneWay, listen, allowCleartext                    bool
	listening                                                             *serviceListener
	sync                                                                  size
	flushDelay                                                            time.Duration
	without                                                               stages
	timeout, reconnect, negotiateTimeout, remember                        time.Duration
	replySchema                                                           string
	schema                                                                schemaSource
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
	o := streamOptions{sync: 1 << 20}
	c := &cobra.Command{
		Use:   "stream URL FILE…",
		Short: "Send messages over a negotiated stream, or as plain SOAP where nobody agrees",
		Long: `stream agrees with the service at URL on a session, sends the messages over its stream
and prints the replies in sending order. A service that does not know hhfr gets them as plain SOAP
in HTTP.

--mode says how the session is opened:

  first-call  the first message goes alone, as plain SOAP that asks for a
              stream; if the service agrees, its connection becomes the stream
              after that, or in TLS from its beginning; the other messages
              follow when the first one has its reply
  met         by the session with the service that --store remembers: the
              messages leave with the first packet
  declared    by the WSDL of --schema, whose binding has an annotation that says
              where there are streams: the first message leaves with the first
              packet
  explicit    by an offer before the first message
  auto        met, if a session is remembered; otherwise declared, if the WSDL
              declares a stream; otherwise explicit for what only an offer can
              express: HHFR Schemas, unchanging headers, an assurance or order,
              --representation xml, --transport udp; otherwise first-call

With --require-hhfr or --listen, first-call asks by a request without a message, not by the first
message. hhfr negotiate URL shows the outcome of each mode.

FILE is sent as it is, whatever it contains; - reads a sequence of XML documents from stdin. --wrap
puts a body into an envelope first.
--one-way expects no replies: a message is done when it is written, and listed at the end if it was
lost. --listen keeps running and prints server-initiated messages until Ctrl-C or SIGTERM, until
--timeout is over, or until the stream ends and no other one can be opened.
--unchanging-header names a header block that messages have in common. A service that agrees gets it
once: messages that contain it byte for byte travel without it, and are whole again after the
stream.
--schema names a description: a WSDL or XML Schema, a file or URL, or an HHFR Schema. It is named by
its fingerprint. A peer that has the same one gets shapes as what the description does not say;
any other peer gets them whole. Messages that are not as described arrive all the same, and are
counted.
If the stream breaks, a new one is negotiated for up to the time of --reconnect; after that the
remaining messages go as plain SOAP. Messages that were written and not answered are listed, and
never sent again.
--node names further nodes of the service. When one dies, or its stream breaks, the next one goes
on: with an assurance exactly where it was, as the nodes share a context store.
--assurance at-least-once and exactly-once number the messages and hold them in --store until they
are committed, even if streams break and processes die meanwhile. Messages and replies may have up
to 1 GiB, as far as the stores have room; after a broken stream only what is missing is sent.
--ordered makes the service handle messages in their order, under any assurance; at-most-once stores
nothing, and lists what a broken stream lost.
With a service that refuses hhfr they go in a sequence of WS-ReliableMessaging if the policy in its
description, at URL?wsdl, says that it takes those; else nothing is sent, exit code 3.
Exactly-once needs a store that persists, here and at the server. Only one process at a time may
send under an assurance from the same store to the same service.

--soap-rm sends the messages in a sequence of WS-ReliableMessaging over plain SOAP, to a service that
knows that and not hhfr: 1.0, or 1.1, which is 1.2 on the wire as well. --addressing says which
WS-Addressing goes with it. Messages are in --store from the moment at which they are accepted until
they are acknowledged; a run sends what an earlier one left first, and without a FILE nothing else.
-v shows the sequence.
Replies and acknowledgements come on the connections of the messages, or, with --callback, to an
address here: the service opens connections for them. With --poll the service keeps them until it is
asked for them. Which of the three it is stays the same as long as --store has the sequence, and so
does the address.

After an interruption, repeat the command with --resume. The store has the number of messages that
the interrupted run had accepted, and a digest of them: if this run begins with the same messages,
these are left out, and the rest is sent. Otherwise:

  all      messages are sent if no earlier run is known, or the last one was
           completed and began with another message
  none     is sent if the last run was completed with exactly these messages
  refused  in all other cases: nothing is sent, exit code 2

Which case it was is printed on stderr. Without --resume all messages are sent, after those that the
store still has of an interrupted run; that run can be resumed later, too. The store remembers 16
interrupted runs to a service.

Exit code 1: a reply is a fault or an HTTP error; 3: there is no connection, or the port speaks http
where the URL says https, or the reverse; 5: the fate of messages is unknown, or they are pending in
the store and not known to be committed; 130: interrupted, after which all that is known is printed.`,
		Example: `  hhfr stream http://127.0.0.1:8080/echo message.xml
  hhfr stream http://127.0.0.1:8080/echo a.xml b.xml --repeat 100 -o json
  cat requests.xml | hhfr stream http://127.0.0.1:8080/echo - --save-dir out
  hhfr stream http://127.0.0.1:8080/echo body.xml --wrap 1.2 --action urn:example:op -H 'X-Trace: 1'
  hhfr stream http://127.0.0.1:8080/echo message.xml --one-way
  hhfr stream http://127.0.0.1:8080/echo message.xml --link edge -v
  hhfr stream http://127.0.0.1:8080/echo message.xml --unchanging-header tenant.xml
  hhfr stream http://127.0.0.1:8080/ledger add.xml more.xml --ordered
  hhfr stream http://127.0.0.1:8080/echo message.xml --transport udp
  hhfr stream http://127.0.0.1:8080/ledger add.xml more.xml --assurance at-least-once --ordered
  hhfr stream http://127.0.0.1:8080/ledger add.xml more.xml --assurance exactly-once --store bolt:client.db --resume
  hhfr stream http://127.0.0.1:8080/ledger add.xml --soap-rm 1.1 --callback 127.0.0.1:8081 --store bolt:client.db
  hhfr stream http://127.0.0.1:8080/ledger add.xml --node http://127.0.0.1:8081/ledger --assurance at-least-once
  hhfr stream http://127.0.0.1:8080/ticker --listen --timeout 2s`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage(errors.New("no URL given"), "usage: "+c.UseLine())
			case len(args) == 1 && !o.listen && !o.kept() && o.soapRM == "":
				return usage(
					errors.New("no FILE given"),
					"name files with messages, or - for stdin; --listen needs none",
				)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.url, o.files = args[0], args[1:]
			return runStream(c.Context(), env, g, o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.repeat, "repeat", 1, "how many times to send all the FILEs")
	f.IntVar(&o.concurrency, "concurrency", 32, "exchanges in flight at once")
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
	g.writtenStoreFlags(f, &o.store, "mem:", "context store; all but mem: store shapes for later sessions: ")
	f.StringVar(&o.action, "action", "", "SOAPAction, or action parameter in SOAP 1.2")
	fieldsFlag(f, &o.fields, "each message and the offer")
	f.StringVar(&o.wrap, "wrap", "", "put each FILE, which is a body, into an envelope of SOAP 1.1 or 1.2")
	f.StringVar(&o.saveDir, "save-dir", "", "write messages there: 000001-request.xml, 000001-reply.xml, …")
	o.record.flags(f, "write all traffic to this pcapng file")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"a host, besides that of the URL, that the answer may name for the stream")
	f.StringArrayVar(&o.nodes, "node", nil, "a further URL of the service, of a node that shares a context store with "+
		"it: when one dies, the next goes on; may be given again")
	f.BoolVar(&o.requireHHFR, "require-hhfr", false, "fail (exit 3) rather than use plain SOAP")
	f.BoolVar(&o.oneWay, "one-way", false, "send messages that expect no reply")
	f.BoolVar(&o.listen, "listen", false,
		"keep running and print server-initiated messages; needs no FILE, implies --require-hhfr")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	flushDelayFlag(f, &o.flushDelay)
	withoutFlag(f, &o.without, "")
	f.DurationVar(&o.reconnect, "reconnect", 30*time.Second,
		"how long to negotiate anew when the stream breaks, before using plain SOAP; 0: not at all")
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
		"WS-Addressing of --soap-rm: 2004/08 or 2005/08; empty: 2004/08 with 1.0, else 2005/08")
	o.replies.flags(f)
	f.DurationVar(&o.timeout, "timeout", 0, "give up after this time in total; 0: never")
	o.tls.flags(f, "URL")
	outputFlag(c, &o.output, "text", "json", "xml")
	return c
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
