// Package replay is hhfr replay.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/dial"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

type replayOptions struct {
	client.ClientOptions
	file, as, output string
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Send the requests of a recording again, and compare the replies",
		Long: `replay takes the requests of a capture or recording, from hhfr streams as well as from
plain SOAP. It sends them again, in their order, as messages of a new session, and compares the
status and the body of each reply with those of the recorded one, byte for byte. Left out are
requests that are not whole, one-way messages, connections that proxies pass on unchanged, HTTP
requests that are not SOAP, and messages on a stream that its peer declined, since these were then
sent elsewhere.

Requests go to the path of --to. If that has none, each goes to its recorded path, and hhfr is
agreed on at the path of the first one. Their HTTP fields are those of the recording, including
credentials, unless --header has one of that name. --store is for shapes that the recording lacks,
too.
Exit code 1: a reply differs. Exit code 5: a request was left out, has no reply or no recorded one,
or the capture lacks something.`,
		Example: `  hhfr replay session.pcapng --to http://127.0.0.1:8080
  hhfr replay session.pcapng --to http://127.0.0.1:8080/echo --as hhfr -o json
  hhfr replay old.pcap --to http://staging.example/service --as soap`,
		Args: command.Takes("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.file = args[0]
			return runReplay(c.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.URL, "to", "", "http or https URL of the service to send to")
	f.StringVar(&o.as, "as", "", "soap or hhfr; empty: hhfr where the service agrees, else SOAP")
	o.Flags(f)
	o.SendFlags(f, 1)
	command.OutputFlag(c, &o.output)
	return c
}

func (o *replayOptions) check() (*url.URL, error) {
	if o.URL == "" {
		return nil, exit.Usagef("hhfr replay FILE --to URL", "--to is missing")
	}
	u, err := command.CheckURL("--to", o.URL)
	switch {
	case err != nil:
		return nil, err
	case o.as != "" && o.as != "soap" && o.as != "hhfr":
		return nil, exit.Usagef("", "--as is soap or hhfr, not %s", o.as)
	}
	o.RequireHHFR, o.Plain = o.as == "hhfr", o.as == "soap"
	return u, cmp.Or(o.CheckSending(), flags.CheckFields(o.Fields))
}

// ReplayLine is a line of `hhfr replay -o json` for one exchange; the last line has the summary.
type ReplayLine struct {
	Number     int                `json:"number"`               // of the exchange, in decode's numbering
	Operation  string             `json:"operation,omitempty"`  // local name of the first element in the Body
	Status     int                `json:"status"`               // HTTP status of the new reply; 0: none arrived
	Millis     float64            `json:"ms"`                   // milliseconds until the whole reply had arrived
	Recorded   bool               `json:"reply_recorded"`       // there is a recorded reply to compare with
	Difference *replay.Difference `json:"difference,omitempty"` // where the replies differ
	Error      string             `json:"error,omitempty"`      // why there is no reply
}

type replaySummary struct {
	Version     int  `json:"version"`                // 1
	HHFR        bool `json:"hhfr"`                   // a stream was agreed
	Sent        int  `json:"sent"`                   // requests sent
	Differences int  `json:"differences"`            // replies that differ
	Unanswered  int  `json:"unanswered"`             // requests without a reply
	Unrecorded  int  `json:"without_recorded_reply"` // replies without a recorded one to compare with
	Skipped     int  `json:"left_out"`               // messages of the capture that cannot be sent again
	Partial     bool `json:"partial"`                // the capture lacks something: packets, its end, shapes
}

// ReplayEnd is the last line of `hhfr replay -o json`.
type ReplayEnd struct {
	Summary replaySummary `json:"summary"` // of the run
}

func runReplay(ctx context.Context, g *command.Global, o replayOptions) (err error) {
	to, err := o.check()
	if err != nil {
		return err
	}
	in, err := input.OpenSources(ctx, g, []string{o.file}, "a capture", true)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	with, err := o.Open(ctx, g)
	defer func() { err = errors.Join(err, with.Close()) }()
	if err != nil {
		return err
	}
	recorded, err := loadRecording(ctx, g, o.file, in.List[0].Octets, with.Store)
	if err != nil {
		return err
	}
	fields, err := sender.ParseFields(o.Fields)
	if err != nil {
		return err
	}
	if err := errors.Join(recorded.Target(to), recorded.SetFields(fields)); err != nil {
		return err
	}
	if err := with.Record(&o.ClientOptions, g); err != nil {
		return err
	}
	cfg, _, err := dial.Config(g, &o.ClientOptions, with)
	if err != nil {
		return err
	}
	session, err := session.Dial(ctx, recorded.Offer(to).String(), cfg)
	if errors.Is(err, &negotiate.Error{Code: negotiate.NoHHFR}) {
		return exit.With(exit.NoPeer, err, "without --as hhfr the requests go as plain SOAP")
	}
	if err != nil {
		return err
	}
	sum := replaySummary{Version: 1, HHFR: session.Agreed().HHFR, Skipped: recorded.Skipped, Partial: recorded.Partial}
	if o.as == "" {
		dial.TellPlain(g, session.Agreed())
	}
	for r := range recorded.Run(ctx, session, o.Concurrency) {
		if errors.Is(r.Err, &negotiate.Error{Code: negotiate.Unreachable}) && sum.Sent == 0 {
			return errors.Join(r.Err, session.Close()) // the next request would fail in the same way
		}
		if err = printReplay(g, o, r, &sum); err != nil {
			break
		}
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, session.Close(), endReplay(g, o, sum))
}

// loadRecording reads what is sent again, and warns of what is missing.
func loadRecording(ctx context.Context, g *command.Global, file string, in io.Reader, store ctxstore.Store) (
	*replay.Recording, error) {
	recorded, err := replay.Load(ctx, in, store)
	if recorded != nil {
		summary.WarnOfStore(g, recorded.StoreFailure)
	}
	if recorded != nil && recorded.CutAt >= 0 {
		g.Warn("the capture is cut off or damaged at offset %d", recorded.CutAt)
	}
	switch {
	case err == nil:
		return recorded, nil
	case !errors.Is(err, &replay.Error{Code: replay.Nothing}):
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	err = fmt.Errorf("%s: %w; %s left out, found instead: %s",
		file, err, printing.Count(recorded.Skipped, "message"), printing.Kinds(recorded.Found))
	if recorded.Partial {
		return nil, exit.With(exit.Partial, err, "hhfr decode shows what is missing")
	}
	return nil, err
}

func printReplay(g *command.Global, o replayOptions, r replay.Outcome, sum *replaySummary) error {
	x, line := r.Exchange, ReplayLine{
		Number:     r.Exchange.Number,
		Operation:  r.Exchange.Operation,
		Millis:     printing.Millis(r.Took),
		Recorded:   r.Exchange.Answered,
		Difference: r.Difference,
	}
	sum.Sent++
	switch {
	case r.Err != nil:
		sum.Unanswered++
		line.Error = g.Message(r.Err)
	default:
		line.Status = r.Status()
		if !x.Answered {
			sum.Unrecorded++
		}
	}
	if r.Difference != nil {
		sum.Differences++
	}
	if o.output == "json" {
		return g.JSON(line)
	}
	name := printing.Shorten(x.Operation, 28)
	if name == "" {
		name = "-"
	}
	var err error
	switch d := r.Difference; {
	case r.Err != nil:
		err = printing.Line(g.Out, "exchange %d (%s): no reply: %s\n", x.Number, name, line.Error)
	case d == nil && !x.Answered:
		err = printing.Line(g.Out, "exchange %d (%s): no reply is recorded; status %d now\n", x.Number, name,
			line.Status)
	case d != nil && d.What == "status":
		err = printing.Line(g.Out, "exchange %d (%s): status differs\n  recorded  %s\n  now       %s\n", x.Number, name,
			d.Recorded, d.Now)
	case d != nil:
		err = printing.Line(g.Out, "exchange %d (%s): reply differs at offset %d; %s recorded, %d now\n"+
			"  recorded  %s\n  now       %s\n", x.Number, name, d.Offset,
			printing.Count(d.RecordedOctets, "octet"), d.NowOctets, d.Recorded, d.Now)
	}
	return err
}

// endReplay prints the summary; its error says what differs, or is missing.
func endReplay(g *command.Global, o replayOptions, sum replaySummary) error {
	if o.output == "json" {
		if err := g.JSON(ReplayEnd{sum}); err != nil {
			return err
		}
	} else {
		differ := "differ"
		if sum.Differences == 1 {
			differ = "differs"
		}
		g.Note("%s sent, %s %s, %d unanswered; %d without a recorded reply, %s left out",
			printing.Count(sum.Sent, "request"),
			printing.Count(sum.Differences,
				"reply"), differ, sum.Unanswered, sum.Unrecorded, printing.Count(sum.Skipped, "message"))
	}
	switch {
	case sum.Differences > 0:
		return exit.Quiet(exit.Failed)
	case sum.Unanswered+sum.Unrecorded+sum.Skipped > 0 || sum.Partial:
		return exit.Quiet(exit.Partial)
	}
	return nil
}
