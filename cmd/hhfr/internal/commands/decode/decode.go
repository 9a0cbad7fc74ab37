// Package decode is hhfr decode, and hhfr reconstruct, which decodes bytes of streams.
package decode

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
)

// DecodeOptions are the flags of both commands.
type DecodeOptions struct {
	Files                         []string
	store                         stores.StoreOptions
	saveDir, writeStreams, Output string
	schema                        description.SchemaSource
	lenient                       bool
	raw                           bool // bytes of streams, without a capture
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o DecodeOptions
	c := &cobra.Command{
		Use:   "decode FILE…",
		Short: "Show the SOAP messages of a capture, from hhfr streams and from plain HTTP",
		Long: `decode reads pcap or pcapng captures, or recordings of hhfr itself, and lists their
SOAP messages, one line each: number (as in the file names of --save-dir), time, client and server,
session, exchange, kind, operation, bytes on the wire, bytes of the envelope, state. -o json, jsonl
and xml print the messages themselves. On a terminal that is too narrow, session, exchange and
endpoints are left out. The client is the endpoint that opened the connection, or else the one that
was seen first. Streams are found by their content, over TCP and UDP, on any port; datagrams that
were lost and sent again, or arrived out of order, are put in order. A connection that was upgraded
to hhfr has plain SOAP before the upgrade; the request that was upgraded and its reply on the stream
are one exchange. Shapes come from the capture, or by their fingerprints from the store; where two
peers had the description of a service, its WSDL, they are made of that, which is in the store, too,
and which --schema names. Unchanging headers, which two peers agreed to send once, are restored from
the negotiation in the capture, or from the session's context in the store.

Several captures are merged in the order of time. Files are read twice, so that each message has its
final state. From a pipe or stdin (-), a message is listed as soon as it is whole, with the state
unverified; when a check of its stream arrives, a line says which messages are verified or
withdrawn. decode does not wait for shapes that come later than a message. So a capture can be
watched while it grows:
tshark -w - | hhfr decode -

What a message says of sequences of WS-ReliableMessaging, in plain SOAP or in a stream, is listed
behind its state: its number and sequence (the beginning of a UUID, the end of another identifier),
the first sending if it was sent again, what it acknowledges, lacks or asks for. A table of the
sequences follows: how many messages, sent again, missing below the highest number, the number up to
which all are acknowledged, the end, faults. A message that passes a proxy is on two hops, and not
sent again.

Messages that two proxies send each other for their own purposes have a name in brackets; those that
carry no bytes of a client or server are listed only with -v.

A message is verified once the check in a later sync or close frame covers it, unverified until
then, and withdrawn if that check fails. Plain SOAP in HTTP is unchecked: nothing in a capture says
whether it is what was sent. Files of --save-dir whose messages are withdrawn have names that end in
.withdrawn.
Exit code 5: something is missing (packets, the end of the file, shapes), or was withdrawn; the rest
is printed. Ctrl-C ends the capture: the messages before it are listed, with exit code 130.`,
		Example: `  hhfr decode session.pcapng
  hhfr decode session.pcapng --store ./store --save-dir messages
  hhfr decode session.pcapng -o jsonl | head -1
  hhfr decode session.pcapng --write-streams raw && hhfr reconstruct raw/*.bin --store ./store --save-dir messages`,
		Args: command.Takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Files = args
			return runDecode(c.Context(), g, o)
		},
	}
	f := c.Flags()
	o.store.Flags(f, "", "context store with shapes that the capture lacks: ")
	o.schema.Flags(f, "WSDL or XML Schema of the messages, whose shapes may stand on it")
	f.StringVar(&o.saveDir, "save-dir", "",
		"write each message to a file there: 000001-request.xml, 000001-reply.xml, …")
	f.StringVar(&o.writeStreams, "write-streams", "",
		"write the bytes of each direction of each stream there, a file per contiguous run")
	f.BoolVar(&o.lenient, "lenient", false, "exit with 0 if something is missing")
	command.OutputFlag(c, &o.Output, "jsonl", "xml")
	return c
}

func runDecode(ctx context.Context, g *command.Global, o DecodeOptions) (err error) {
	defer input.Frugal(enoughToDecode)()
	in, err := input.OpenSources(ctx, g, o.Files, "a capture", o.Output == "json")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	store, err := o.store.OpenReadOnly(ctx, g)
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }()
	}
	described, err := description.Read(ctx, g, o.schema)
	if err != nil {
		return err
	}
	cfg := capture.DecodeConfig{Store: store, Own: described.Own(), Starts: o.starts()}
	if o.writeStreams != "" {
		if err := os.MkdirAll(o.writeStreams, 0o755); err != nil {
			return err
		}
		runs := &runFiles{dir: o.writeStreams}
		defer func() { err = errors.Join(err, runs.close()) }()
		cfg.Octets = runs.write
	}
	shown := in.Watch(g, capture.Passes)
	defer shown.End()
	// An interrupt ends the capture; the messages before it are shown.
	whole := context.WithoutCancel(ctx)
	r := capture.NewReader(whole, cfg)
	return Present(ctx, g, o, r, shown.Until(r.Captures(whole, in.List...), !terminal.IsFile(g.Out)))
}

// enoughToDecode is what decoding needs, however much arrives, in bytes.
const enoughToDecode = 48 << 20

// starts reports whether only the beginnings of messages are needed.
func (o *DecodeOptions) starts() bool { return o.saveDir == "" && o.Output == "text" }

// names lists the inputs for people.
func (o *DecodeOptions) names() string { return strings.Join(o.Files, ", ") }

// Present prints and saves what is decoded as it arrives; its error says what is missing.
func Present(ctx context.Context, g *command.Global, o DecodeOptions, r *capture.Reader,
	events iter.Seq2[capture.Event, error]) error {
	if o.saveDir != "" {
		if err := os.MkdirAll(o.saveDir, 0o755); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(g.Out)
	l := newListing(out, o.Output, rowLayout{width: terminal.Columns(g.Out), all: g.Verbose, ends: r.Widest})
	for ev, err := range events {
		if err == nil {
			err = l.event(ev, o.saveDir)
		}
		if err == nil && !r.Twice() {
			err = out.Flush()
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
	sum := r.Summary()
	if err := errors.Join(l.end(sum), out.Flush()); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		summarize(g, o, sum, l)
		return cause
	}
	return l.verdict(g, o, sum)
}

// verdict returns an error that says what is missing.
func (l *listing) verdict(g *command.Global, o DecodeOptions, s *capture.Summary) error {
	summarize(g, o, s, l)
	switch {
	case o.raw && len(s.Streams) == 0:
		return exit.Withf(exit.Malformed,
			"raw stream bytes begin with a hello, or have a sync frame; captures are for hhfr decode",
			"no hhfr stream in %s", o.names())
	case s.Counts().Messages == 0 && len(s.Streams) == 0 && !s.Partial():
		return exit.Withf(exit.Failed, "",
			"%w in %s; found instead: %s", capture.ErrNothing, o.names(),
			summary.Instead(s))
	case s.Partial() && !o.lenient:
		return exit.Quiet(exit.Partial)
	}
	return nil
}
