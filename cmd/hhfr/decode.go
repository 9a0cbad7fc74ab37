package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/capture"
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
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
		Long: `decode reads a pcap or pcapng capture, or a recording of hhfr itself, and lists its SOAP messages: one line each (time, session, exchange,
direction, operation, octets on the wire, octets of the envelope, state), or all of them. Streams are found by their content, over TCP and UDP, whatever
their port; datagrams that were lost and sent again, or came out of order, are put in order. Shapes come from the capture, or
by their fingerprints from the store; so do unchanging headers, which two ends agreed to send once: they are put
back from the negotiation in the capture, or the session's context in the store.

A message is verified when a later sync or close frame vouches for it, or, on an unordered stream, its own check; unverified while none does, withdrawn when its check is wrong.
Exit code 5: something is missing (packets, the end of the file, shapes); what is there is given.`,
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
	in, err := openInput(ctx, env, o.file)
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
	if err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	err = present(env, g, o, result)
	if err == nil && !o.lenient {
		err = context.Cause(ctx)
	}
	return err
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
	if err := printResult(out, o.output, r); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if !g.quiet {
		summarize(env.Err, r)
	}
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
	var list []string
	for what, n := range r.Others {
		list = append(list, fmt.Sprintf("%d %s", n, what))
	}
	for why, n := range r.Stats.Undecoded {
		list = append(list, fmt.Sprintf("%d packets that were left out: %s", n, why))
	}
	if len(list) == 0 {
		return "nothing"
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func printResult(w io.Writer, format string, r *capture.Result) error {
	switch format {
	case "json":
		return writeJSON(w, newReport(r))
	case "jsonl":
		for _, m := range r.Messages {
			if err := writeJSON(w, newMessageReport(m)); err != nil {
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
	return printLines(w, r)
}

// printLines lists the messages, one line each.
func printLines(w io.Writer, r *capture.Result) error {
	if len(r.Messages) == 0 {
		return nil
	}
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	line("%-15s %-8s %9s %-8s %-28s %8s %8s  %s\n", "TIME", "SESSION", "EXCHANGE", "MESSAGE", "OPERATION", "WIRE", "SOAP", "STATE")
	for _, m := range r.Messages {
		kind := "request"
		switch {
		case m.Reply:
			kind = "reply"
		case m.OneWay:
			kind = "one-way"
		}
		exchange := fmt.Sprintf("%d", m.Exchange)
		if m.HHFR && m.Lane > 0 {
			exchange = fmt.Sprintf("%d.%d", m.Lane, m.Exchange)
		}
		when := "-"
		if !m.First.IsZero() {
			when = m.First.UTC().Format("15:04:05.000000")
		}
		why := ""
		if m.Why != "" {
			why = ": " + m.Why
		}
		why += placeText(m.Place)
		session := m.SessionString()
		operation := m.Operation.Local
		if operation == "" {
			operation = "-"
		}
		line("%-15s %-8s %9s %-8s %-28s %8d %8d  %s%s\n", when, session[:min(8, len(session))], exchange, kind, shorten(operation, 28), m.Wire, len(m.Body), m.State, why)
	}
	return err
}

// placeText tells the place of a message behind its state: nothing, if it has none.
func placeText(p frame.Place) string {
	switch {
	case p.Number == 0:
		return ""
	case p.Unknown:
		return fmt.Sprintf(", number %d says that the fate of %d is unknown", p.Number, p.Answers)
	case p.Answers != 0:
		return fmt.Sprintf(", number %d answers %d", p.Number, p.Answers)
	}
	return fmt.Sprintf(", number %d", p.Number)
}

// shorten cuts a name and leaves nothing in it that would move a terminal's cursor.
func shorten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// summarize tells on stderr what was found and what is missing.
func summarize(w io.Writer, r *capture.Result) {
	c := r.Counts()
	switch {
	case r.Stats.UDPDatagrams > 0:
		fmt.Fprintf(w, "hhfr: %d packets, %d TCP connections, %d UDP datagrams; ", r.Stats.Packets, r.Stats.TCPFlows, r.Stats.UDPDatagrams)
	case r.Stats.Packets > 0:
		fmt.Fprintf(w, "hhfr: %d packets, %d TCP connections; ", r.Stats.Packets, r.Stats.TCPFlows)
	default:
		fmt.Fprint(w, "hhfr: ")
	}
	fmt.Fprintf(w, "%d streams, %d messages", len(r.Streams), c.Messages)
	for _, n := range []struct {
		n    int
		what string
	}{{c.Verified, "verified"}, {c.Unverified, "unverified"}, {c.Withdrawn, "withdrawn"}, {c.Incomplete, "incomplete"}, {c.Cancelled, "cancelled"}, {c.Undecodable, "undecodable"}} {
		if n.n > 0 {
			fmt.Fprintf(w, ", %d %s", n.n, n.what)
		}
	}
	fmt.Fprintln(w)
	for i, s := range r.Streams {
		fmt.Fprintf(w, "hhfr: stream %d: messages %d + %d octets, shapes %d + %d, sync %d + %d\n", i+1, s.Octets[0].Data, s.Octets[1].Data,
			s.Octets[0].Shape, s.Octets[1].Shape, s.Octets[0].Sync, s.Octets[1].Sync)
		for _, p := range s.Problems {
			fmt.Fprintf(w, "hhfr: warning: stream %d: %s\n", i+1, shorten(p, 300))
		}
		if s.Cut {
			fmt.Fprintf(w, "hhfr: warning: stream %d is not whole: a direction begins without its hello, ends without its close, or lacks octets\n", i+1)
		}
	}
	if len(r.Messages) == 0 && len(r.Streams) == 0 && r.Partial() {
		fmt.Fprintf(w, "hhfr: warning: %v; found instead: %s\n", capture.ErrNothing, instead(r))
	}
	if r.Stats.Truncated {
		fmt.Fprintf(w, "hhfr: warning: the capture is cut off or damaged at offset %d\n", r.Stats.TruncatedAt)
	}
	if r.Stats.Gaps > 0 {
		fmt.Fprintf(w, "hhfr: warning: %d gaps, at least %d octets are not in the capture\n", r.Stats.Gaps, r.Stats.MissingOctets)
	}
	lacking := map[string]int{}
	for _, m := range r.Messages {
		switch {
		case m.Lacks != "":
			lacking["shape "+m.Lacks]++
		case m.LacksContext != "":
			lacking["context "+m.LacksContext]++
		}
	}
	for _, what := range slices.Sorted(mapKeys(lacking)) {
		fmt.Fprintf(w, "hhfr: warning: %d messages need the %s: name a store that has it with --store\n",
			lacking[what], what)
	}
	if len(r.Messages) > 0 && len(r.Others) > 0 && c.Messages > 0 {
		if _, untrusted := r.Others["streams without a sync frame to trust"]; untrusted {
			fmt.Fprintln(w, "hhfr: warning: a stream that begins in the middle has no two sync frames that agree; a store with its session would do: --store")
		}
	}
}
