package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/capture"
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
)

type decodeOptions struct {
	file, store, saveDir, writeStreams, output string
	lenient                                    bool
}

func newDecode(env Env, g *global) *cobra.Command {
	var o decodeOptions
	c := &cobra.Command{
		Use:   "decode FILE",
		Short: "Show the SOAP messages of a capture: of hhfr streams, and plain in HTTP",
		Long: `decode reads a pcap or pcapng capture, or a recording of hhfr itself, and lists its SOAP messages:
one line each (number, as in the names of --save-dir, time, client and server, session, exchange, kind, operation,
octets on the wire, octets of the envelope, state), or all of them. On a terminal that is too narrow for that session,
exchange and ends are left out. The client is who opened the connection, or was seen first. Streams are found by their content, over TCP and UDP, whatever
their port; datagrams that were lost and sent again, or came out of order, are put in order. Shapes come from the capture, or
by their fingerprints from the store; so do unchanging headers, which two ends agreed to send once: they are put
back from the negotiation in the capture, or the session's context in the store.

What two proxies say to each other, beside the messages of their ends, is named in brackets; where it carries nothing
of these, -v lists it.

A message is verified when the check of a later sync or close frame covers it; unverified while none does, withdrawn when its check is wrong.
Plain SOAP in HTTP is unchecked: nothing in a capture says whether it is what was sent.
Exit code 5: something is missing (packets, the end of the file, shapes); what is there is given. Ctrl-C ends the
capture: what came is listed, with exit code 130.`,
		Example: `  hhfr decode session.pcapng
  hhfr decode session.pcapng --store ./store --save-dir messages
  hhfr decode session.pcapng -o jsonl | head -1
  hhfr decode session.pcapng --write-streams raw && hhfr reconstruct raw/*.bin --store ./store --save-dir messages`,
		Args: takes("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.file = args[0]
			return runDecode(c.Context(), env, g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.store, "store", "", "context store with shapes that the capture lacks: "+strings.Join(engines.Forms(), " or "))
	f.StringVar(&o.saveDir, "save-dir", "", "write each message to a file there: 000001-request.xml, 000001-reply.xml, …")
	f.StringVar(&o.writeStreams, "write-streams", "", "write the octets of each direction of each stream there, a file per contiguous run")
	f.BoolVar(&o.lenient, "lenient", false, "exit with 0 where something is missing")
	outputFlag(c, &o.output, "text", "json", "jsonl", "xml")
	return c
}

func runDecode(ctx context.Context, env Env, g *global, o decodeOptions) error {
	in, err := openInput(ctx, env, g, o.file, "a capture")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	store, err := openReadOnly(ctx, o.store)
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }()
	}
	cfg := capture.DecodeConfig{Store: store}
	if o.writeStreams != "" {
		if err := os.MkdirAll(o.writeStreams, 0o755); err != nil {
			return err
		}
		cfg.EachRun = func(stream, direction int, r *flow.Run) error {
			return os.WriteFile(filepath.Join(o.writeStreams, capture.RunName(stream, direction, r.Offset)), r.Data, 0o600)
		}
	}
	// An interrupt ends the capture, whose messages up to there are shown.
	result, err := capture.Decode(context.WithoutCancel(ctx), endingWith{ctx, in}, cfg)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s: %w", o.file, err)
	}
	return errors.Join(present(env, g, o, result), context.Cause(ctx))
}

// openReadOnly opens a store that must exist; nil for no name.
func openReadOnly(ctx context.Context, spec string) (ctxstore.Store, error) {
	if spec == "" {
		return nil, nil
	}
	return engines.Open(ctx, spec, engines.Options{ReadOnly: true})
}

// present prints and saves what was decoded, and tells by its error what is missing.
func present(env Env, g *global, o decodeOptions, r *capture.Result) error {
	if o.saveDir != "" {
		if err := r.Save(o.saveDir); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(env.Out)
	controls := controlsOf(r.Messages)
	if err := printResult(out, o.output, r, controls, rowLayout{width: columns(env.Out), all: g.verbose}); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	summarize(g, o, r, controls)
	switch {
	case len(r.Messages) == 0 && len(r.Streams) == 0 && !r.Partial():
		return &problem{exitFailed, fmt.Errorf("%w in %s; found instead: %s", capture.ErrNothing, o.file, instead(r)), ""}
	case r.Partial() && !o.lenient:
		return quiet(exitPartial)
	}
	return nil
}

// instead says what an input has instead of messages.
func instead(r *capture.Result) string {
	kinds := maps.Clone(r.Others)
	for why, n := range r.Stats.Undecoded {
		kinds["packets left out: "+why] = n
	}
	return countKinds(kinds)
}

func printResult(w io.Writer, format string, r *capture.Result, controls controls, layout rowLayout) error {
	switch format {
	case "json":
		return writeJSON(w, newReport(r, controls))
	case "jsonl":
		for _, m := range r.Messages {
			if err := writeJSON(w, newMessageReport(m, controls)); err != nil {
				return err
			}
		}
		return nil
	case "xml":
		for _, m := range r.Messages {
			if len(m.Body) == 0 || !m.Whole() {
				continue
			}
			if _, err := w.Write(m.Body); err != nil {
				return err
			}
			if m.Body[len(m.Body)-1] != '\n' {
				if _, err := w.Write([]byte{'\n'}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return layout.print(w, r, controls)
}
