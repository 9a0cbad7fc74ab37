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
	"github.com/hhfr/hhfr/cmd/hhfr/internal/login"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

type replayOptions struct {
	client.ClientOptions
	login.Login
	file, as, output string
	compare          string
	ignore           []string
	pace             float64
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Send the requests of a recording again, and compare the replies",
		Long: `replay takes the requests of a capture or recording, from hhfr streams as well as from
plain SOAP. It sends them again, in their order, as messages of a new session, and compares the
status and the body of each reply with those of the recorded one, byte for byte, or, with --compare
infoset, by elements, attributes and texts: then each place that differs is listed, and what --ignore
selects is not compared. Left out are requests that are not whole, one-way messages, connections that
proxies pass on unchanged, HTTP requests that are not SOAP, and messages on a stream that its peer
declined, since these were then sent elsewhere.

--ignore takes an XPath, whose names are local names of any namespace; ids, for UUIDs and what names
messages in WS-Addressing; or times, for dates with times. Requests are sent as they were recorded,
with what they say of when: with --user and --wss the UsernameToken and the Timestamp of a recorded
Security header are made new, if nothing in it is signed.

Requests go to the path of --to. If that has none, each goes to its recorded path, and hhfr is
agreed on at the path of the first one. Their HTTP fields are those of the recording, including
credentials, unless --header has one of that name. --store is for shapes that the recording lacks,
too.
Exit code 1: a reply differs. Exit code 5: a request was left out, has no reply or no recorded one,
or the capture lacks something.`,
		Example: `  hhfr replay session.pcapng --to http://127.0.0.1:8080
  hhfr replay session.pcapng --to http://127.0.0.1:8080/echo --as hhfr -o json
  hhfr replay old.pcap --to http://staging.example/service --as soap
  hhfr replay old.pcap --to http://staging.example/service --ignore ids --ignore times --ignore //serial`,
		Args: command.Takes("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.file = args[0]
			return runReplay(c.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.URL, "to", "", "http or https URL of the service to send to")
	f.StringVar(&o.as, "as", "", "soap or hhfr; empty: hhfr where the service agrees, else SOAP")
	o.ClientOptions.Flags(f)
	o.SendFlags(f, 1)
	o.Login.Flags(f)
	f.StringVar(&o.compare, "compare", "", "bytes or infoset; empty: infoset if --ignore is given, else bytes")
	f.StringArrayVar(&o.ignore, "ignore", nil,
		"do not compare what this `XPATH` selects, or ids, or times; may be repeated")
	f.Float64Var(&o.pace, "pace", 0,
		"1: with the times between requests that were recorded; 2: twice as fast; 0: at once")
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
	if o.pace < 0 {
		return nil, exit.Usagef("", "--pace is not below 0")
	}
	o.RequireHHFR, o.Plain = o.as == "hhfr", o.as == "soap"
	return u, cmp.Or(o.CheckSending(), flags.CheckFields(o.Fields))
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
	run, fields, err := o.config()
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
	for r := range recorded.Run(ctx, session, run) {
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
