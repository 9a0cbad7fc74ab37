package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/capture"
)

type decodeOptions struct {
	files                         []string
	store                         storeFlags
	saveDir, writeStreams, output string
	schema                        schemaSource
	lenient                       bool
	raw                           bool // bytes of streams, without a capture
}

func newDecode(env Env, g *global) *cobra.Command {
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
		Args: takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			return runDecode(c.Context(), env, g, o)
		},
	}
	f := c.Flags()
	o.store.flags(f, "", "context store with shapes that the capture lacks: ")
	o.schema.flags(f, "WSDL or XML Schema of the messages, whose shapes may stand on it")
	f.StringVar(&o.saveDir, "save-dir", "",
		"write each message to a file there: 000001-request.xml, 000001-reply.xml, …")
	f.StringVar(&o.writeStreams, "write-streams", "",
		"write the bytes of each direction of each stream there, a file per contiguous run")
	f.BoolVar(&o.lenient, "lenient", false, "exit with 0 if something is missing")
	outputFlag(c, &o.output, "text", "json", "jsonl", "xml")
	return c
}

func runDecode(ctx context.Context, env Env, g *global, o decodeOptions) (err error) {
	defer frugal(enoughToDecode)()
	in, err := openSources(ctx, env, g, o.files, "a capture", o.output == "json")
	if err != nil {
		return err
	}
	defer func() { _ = in.close() }()
	store, err := o.store.openReadOnly(ctx, g)
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }()
	}
	described, err := readDescription(ctx, g, o.schema)
	if err != nil {
		return err
	}
	cfg := capture.DecodeConfig{Store: store, Own: described.own(), Starts: o.starts()}
	if o.writeStreams != "" {
		if err := os.MkdirAll(o.writeStreams, 0o755); err != nil {
			return err
		}
		runs := &runFiles{dir: o.writeStreams}
		defer func() { err = errors.Join(err, runs.close()) }()
		cfg.Octets = runs.write
	}
	shown := in.watch(env, g, capture.Passes)
	defer shown.end()
	// An interrupt ends the capture; the messages before it are shown.
	whole := context.WithoutCancel(ctx)
	r := capture.NewReader(whole, cfg)
	return present(ctx, env, g, o, r, shown.until(r.Captures(whole, in.list...), !isFile(env.Out)))
}

// enoughToDecode is what decoding needs, however much arrives, in bytes.
const enoughToDecode = 48 << 20

// frugal makes the garbage collector run before memory exceeds so many bytes. A limit that the user
// has set (GOMEMLIMIT) takes precedence.
func frugal(enough int64) (undo func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 {
		debug.SetMemoryLimit(enough)
	}
	return func() { debug.SetMemoryLimit(before) }
}

// starts reports whether only the beginnings of messages are needed.
func (o *decodeOptions) starts() bool { return o.saveDir == "" && o.output == "text" }

// names lists the inputs for people.
func (o *decodeOptions) names() string { return strings.Join(o.files, ", ") }

// present prints and saves what is decoded as it arrives; its error says what is missing.
func present(ctx context.Context, env Env, g *global, o decodeOptions, r *capture.Reader,
	events iter.Seq2[capture.Event, error]) error {
	if o.saveDir != "" {
		if err := os.MkdirAll(o.saveDir, 0o755); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(env.Out)
	l := newListing(out, o.output, rowLayout{width: columns(env.Out), all: g.verbose, ends: r.Widest})
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
func (l *listing) verdict(g *global, o decodeOptions, s *capture.Summary) error {
	summarize(g, o, s, l)
	switch {
	case o.raw && len(s.Streams) == 0:
		return failure(exitMalformed, errors.New("no hhfr stream in "+o.names()),
			"raw stream bytes begin with a hello, or have a sync frame; captures are for hhfr decode")
	case s.Counts().Messages == 0 && len(s.Streams) == 0 && !s.Partial():
		return failure(exitFailed, fmt.Errorf("%w in %s; found instead: %s", capture.ErrNothing, o.names(),
			instead(s)), "")
	case s.Partial() && !o.lenient:
		return quiet(exitPartial)
	}
	return nil
}

// instead describes what an input has instead of messages.
func instead(s *capture.Summary) string {
	kinds := maps.Clone(s.Others)
	for why, n := range s.Stats.Undecoded {
		kinds["packets left out: "+why] = n
	}
	return countKinds(kinds)
}
