// Package decode is hhfr decode.
package decode

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/decoding"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/sources"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o decodeOptions
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

Connections in TLS 1.2 and 1.3 are decrypted if their keys are known: a pcapng file may have them in
it, and --keylog names the file that one of the peers has written, hhfr itself among others, if the
environment variable SSLKEYLOGFILE named it. It may still grow. A message in TLS has the time at
which its bytes could be read.

Envelopes in Fast Infoset (application/fastinfoset, application/soap+fastinfoset) are shown as XML,
but for --export; the bytes of an envelope are then those of its XML.

Several captures are merged in the order of time. Files are read twice, so that each message has its
final state. From a pipe or stdin (-), a message is listed as soon as it is whole, with the state
unverified; when a check of its stream arrives, a line says which messages are verified or
withdrawn. decode does not wait for shapes that come later than a message. So a capture can be
watched while it grows:
tshark -w - | hhfr decode -
On Linux -i captures from an interface itself, until Ctrl-C; it needs the right CAP_NET_RAW, or root.
--attach has what passes through a running hhfr serve or proxy, which needs no right.

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
		Args: o.Args,
		RunE: func(c *cobra.Command, args []string) error {
			o.Files = args
			return runDecode(c.Context(), g, &o)
		},
	}
	f := c.Flags()
	o.DecodeOptions.Flags(f)
	f.StringVar(&o.writeStreams, "write-streams", "",
		"write the bytes of each direction of each stream there, a file per contiguous run")
	o.CaptureOptions.Flags(f)
	command.OutputFlag(c, &o.Output, "jsonl", "xml")
	return c
}

func runDecode(ctx context.Context, g *command.Global, o *decodeOptions) (err error) {
	defer input.Frugal(decoding.EnoughToDecode)()
	if err := o.Check(); err != nil {
		return err
	}
	keys, closeKeys, err := o.Keys()
	if err != nil {
		return err
	}
	defer closeKeys()
	cfg, done, err := o.DecodeOptions.Open(ctx, g)
	if err != nil {
		return err
	}
	defer done()
	cfg.Keys, cfg.Ports = keys, o.Ports
	if o.Live() != "" && o.Output == "json" {
		return exit.Usagef("-o jsonl prints messages as they come", "-o json is for captures that have an end")
	}
	in, ended, err := o.CaptureOptions.Open(ctx, g, o.Files, o.Output == "json")
	if err != nil {
		return err
	}
	if o.Live() != "" {
		o.Files = []string{o.Live()}
		g.Note("capturing from %s; Ctrl-C ends it", o.Live())
	}
	defer func() { _ = in.Close() }()
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
	events := shown.Until(r.Captures(whole, in.List...), !terminal.IsFile(g.Out))
	err = decoding.Present(ctx, g, o.DecodeOptions, r, events)
	ended()
	return err
}

// decodeOptions are the flags of the command.
type decodeOptions struct {
	decoding.DecodeOptions
	sources.CaptureOptions
	writeStreams string
}
