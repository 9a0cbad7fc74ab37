package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/report"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/soap"
)

// sessionOptions are the flags.
type sessionOptions struct {
	bench.SessionConfig
	service, output, save string
	ways, messages        []string
	tls                   trust.ClientTLS
}

// peerRepeats is how often a session is repeated on a network, whose times differ; on a link they
// do not.
const peerRepeats = 5

func newBenchSession(g *command.Global) *cobra.Command {
	var o sessionOptions
	c := &cobra.Command{
		Use:   "session [URL]",
		Short: "Whole sessions, on an emulated link or a network: hhfr beside plain SOAP",
		Long: `session runs the sessions of tables 2 to 5 of the HHFR papers, with hhfr as hhfr stream
uses it and with plain SOAP, and prints their times as those tables stand, beside the papers' own.

With a URL the sessions go to that hhfr serve, over the network that is there, in real time; each is
repeated 5 times unless --repeat says otherwise, after one that does not count.

Without one they go over an emulated link, with the server in the same process. For a thin link the
clock runs faster than real time, for a fast one slower; the times printed are those of the link.
Each time is compared with the time that the session's own bytes and round trips take. A session
whose time is more than 10 % off, or in which computing took more than 5 % of the time, is rerun at
half the speed, up to twice. If it is still off, it is marked, and the exit code is 1.

--ways chooses how messages travel. With hhfr that is named after the mode in which the session is
opened: explicit (as in the papers), first-call, or met (the peers had a session before); with -tls
it is in TLS 1.3. Plain SOAP uses HTTP/1.1: soap-new opens a connection for each message, as in the
papers, soap-kept uses one for all; https- is the same in TLS 1.3, https-resumed- in TLS that resumes
an earlier session; -gzip compresses. h2c- and h2- use HTTP/2 without and with TLS. Messages of
-queued do not wait for replies. With an http URL nothing is in TLS, with an https URL all.

N is from how many messages on, among the session lengths measured, hhfr is at least as fast as plain
SOAP of some kind (against gzip: within 1 %). --overheads, and explicit, measure the papers'
costs beside the messages: Oa, Ob and Oc; with a URL, Oa needs hhfr serve --context. --overheads also
measures the memory of messages of floats, and the largest array under 24 MB. The cost of a message
is the slope of the time over explicit sessions of all lengths. A single length has no slope; a slope
that is not above zero is reported but not used. --sweep-size fits lines to the times over the sizes
of messages, one message a session, and says where they cross.

--link treo600 is the papers' phone with its link, fitted to their tables: 14.4 kbit/s, round trips of
320 ms, and cpu=2300ms/170ms/20ms: what the client computes for a message of plain SOAP, for one on a
stream, and for each item that becomes text in plain SOAP.

With --transport udp streams go over datagrams, which the link may lose, reorder and repeat: --link
14k4,loss=5%,reorder=1%,seed=7. -v then shows what this costs in addition to the bytes, as OFF. Plain
SOAP is left out: its TCP is emulated on this link, and loses nothing.`,
		Example: `  hhfr bench session
  hhfr bench session http://127.0.0.1:8080 --save phone.jsonl
  hhfr bench session --service sum --sizes 10 --n 1,5,10 --link gprs -o json
  hhfr bench session --service echo --ways all --n 1,2,4 --link edge
  hhfr bench session --service sum --sweep-size
  hhfr bench session http://127.0.0.1:8080 --messages a.xml,b.xml --n 1,10
  hhfr bench session --service sum --sizes 10 --n 10,50 --transport udp --link 14k4,loss=5%,seed=7`,
		Args: command.Takes("[URL]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.read(g, c, args); err != nil {
				return err
			}
			return o.run(c.Context(), g)
		},
	}
	f := c.Flags()
	f.StringVar(&o.service, "service", "",
		"concat, sum, or echo, which returns floats unchanged; empty: concat and sum")
	f.StringSliceVar(&o.ways, "ways", names(bench.UsualWays),
		"how messages travel: "+strings.Join(names(bench.Ways()), ", ")+"; all: all of them")
	f.IntSliceVar(&o.Sizes, "sizes", nil, "items in a message; empty: those of the papers")
	f.IntSliceVar(&o.Counts, "n", nil, "messages in a session; empty: those of the papers")
	f.StringSliceVar(&o.messages, "messages", nil,
		"files with SOAP envelopes to send in turn and have echoed, instead of a service's")
	f.BoolVar(&o.SweepSize, "sweep-size", false, "fit lines to the times over sizes")
	f.BoolVar(&o.Overheads, "overheads", false, "measure the costs beside the messages, and memory")
	f.IntVar(&o.Repeat, "repeat", 1, fmt.Sprintf("how many times each row is measured; with a URL %d unless given",
		peerRepeats))
	network.ClockedLinkFlags(f, &o.Link, "14k4", &o.Speed)
	f.StringVar(&o.Transport, "transport", "tcp", "transport of streams: tcp or udp")
	o.tls.Flags(f)
	saveFlag(f, &o.save)
	command.OutputFlag(c, &o.output)
	return c
}

// read checks the arguments, and reads the files that they name.
func (o *sessionOptions) read(g *command.Global, c *cobra.Command, args []string) (err error) {
	if len(args) > 0 {
		if o.Peer, err = command.CheckURL("URL", args[0]); err != nil {
			return err
		}
		if o.TLS, err = o.tls.Config(g.System); err != nil {
			return err
		}
		for _, name := range []string{"link", "speed", "transport"} {
			if c.Flags().Changed(name) {
				return exit.Usagef("leave out either", "--%s is for an emulated link, and URL for the network", name)
			}
		}
		if !c.Flags().Changed("repeat") {
			o.Repeat = peerRepeats
		}
	}
	if o.Repeat < 1 {
		return exit.Usagef("", "--repeat is at least 1, not %d", o.Repeat)
	}
	if o.service != "" {
		o.Services = []string{o.service}
	}
	for _, name := range o.ways {
		if !c.Flags().Changed("ways") {
			break // the transport may have others
		}
		o.Ways = append(o.Ways, bench.SessionWay(name))
	}
	if slices.Contains(o.ways, allWays) {
		o.Ways = bench.Ways()
		if o.Peer != nil {
			o.Ways = slices.DeleteFunc(o.Ways, func(w bench.SessionWay) bool {
				return w.Secure() != (o.Peer.Scheme == "https")
			})
		}
	}
	return o.readMessages()
}

// allWays is the value for all.
const allWays = "all"

func (o *sessionOptions) readMessages() error {
	if len(o.messages) == 0 {
		return nil
	}
	if o.service != "" || len(o.Sizes) > 0 || o.SweepSize {
		return exit.Usagef("", "--messages has messages of its own, without --service, --sizes and --sweep-size")
	}
	for _, name := range o.messages {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if soap.Recognize(b).Version == soap.None {
			return exit.Withf(exit.Malformed, "--messages takes files of one SOAP envelope each",
				"%s is no SOAP envelope", name)
		}
		o.Messages = append(o.Messages, b)
	}
	return nil
}

func names(ways []bench.SessionWay) (list []string) {
	for _, w := range ways {
		list = append(list, string(w))
	}
	return list
}

// BenchReport is the JSON of bench session.
type BenchReport struct {
	Version int            `json:"version"` // 1
	Report  *bench.Results `json:"report"`  // what was measured
}

func (o *sessionOptions) run(ctx context.Context, g *command.Global) (err error) {
	ctx, out, stop := printing.NewPrintout(ctx, g.Out)
	defer stop()
	g.Out = out
	records := &saved{}
	o.Each = func(c bench.Cell) error {
		g.Detail("%s", cellLine(c))
		return records.write(experiment.Measured{Session: o.sessionRow(c)})
	}
	o.EachOverhead = func(c bench.Overhead) error {
		return records.write(experiment.Measured{Overhead: &experiment.OverheadRow{Name: c.Name, Repeat: c.Repeat,
			Link: c.Link, Peer: o.peer(), Millis: c.Millis, SentOctets: c.Sent, ReceivedOctets: c.Received}})
	}
	o.EachMemory = func(m experiment.MemoryRow) error { return records.write(experiment.Measured{Memory: &m}) }
	if err := records.open(ctx, o.save, o.Peer, o.TLS); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.close()) }()
	r, err := bench.Session(ctx, o.SessionConfig)
	var profile *link.Error
	switch {
	case errors.Is(err, &link.Error{Code: link.Unsupported}):
		return exit.Usage(err, "--transport udp carries streams by datagrams")
	case errors.As(err, &profile), errors.Is(err, bench.ErrConfig):
		return exit.Usage(err, "")
	case errors.Is(err, bench.ErrPeer):
		hint := "hhfr serve there listens at URL, http://HOST:PORT"
		if session.TroubleOf(err) != 0 {
			hint = exit.UnreachableHint(err)
		}
		return exit.With(exit.NoPeer, err, hint)
	case r == nil:
		return err
	case out.Err != nil:
		return out.Err
	}
	if o.output == "json" {
		if werr := g.JSON(BenchReport{1, r}); werr != nil {
			return werr
		}
		return err
	}
	if err := report.Write(g.Out, "text", sessionTables(r)); err != nil {
		return err
	}
	tell(g, r)
	if errors.Is(err, bench.ErrNotTheLink) {
		return exit.With(exit.Failed, err, "see --speed, and what else runs on this machine")
	}
	return err
}

// tell reports how it was measured, and what is to be known of that.
func tell(g *command.Global, r *bench.Results) {
	for _, m := range r.Models {
		for _, doubt := range m.Doubts {
			g.Warn("%s", doubt)
		}
	}
	for _, l := range r.LeftOut {
		g.Warn("%s is left out: %s", l.What, l.Why)
	}
	if r.Peer != "" {
		g.Note("peer %s, computing took %.1f %% of the time", r.Peer, 100*r.CPU)
		return
	}
	g.Note("link %s, streams over %s, clock %g times as fast, computing took %.1f %% of the time",
		r.Link, r.Transport, r.Speed, 100*r.CPU)
}

// cellLine is what -v shows of a session as it ends.
func cellLine(c bench.Cell) string {
	text := fmt.Sprintf("%s(%d), %s, n = %d, repeat %d: %.1f ms, %d bytes sent, %d received", c.Service, c.Size, c.Way,
		c.N, c.Repeat, c.Millis, c.Sent, c.Received)
	if c.Expected > 0 {
		text += fmt.Sprintf(", expected %.1f ms, OFF %.1f %%", c.Expected, 100*c.Off())
	}
	if !c.Good() {
		text += fmt.Sprintf(", NOT THE LINK'S (computing: %.0f %%)", 100*c.CPU)
	}
	return text
}

// peer is the URL in records; empty without one.
func (o *sessionOptions) peer() string {
	if o.Peer == nil {
		return ""
	}
	return o.Peer.Redacted()
}

func (o *sessionOptions) sessionRow(c bench.Cell) *experiment.SessionRow {
	row := &experiment.SessionRow{Service: c.Service, Way: string(c.Way), Size: c.Size, N: c.N, Repeat: c.Repeat,
		Peer: o.peer(), Millis: c.Millis, SetupMillis: c.Setup, SentOctets: c.Sent, ReceivedOctets: c.Received,
		ComputeMillis: c.Compute}
	if o.Peer == nil {
		row.Link = o.Link
	}
	if !c.Good() {
		row.Doubt = fmt.Sprintf("not the link's time alone: %.1f %% off, computing took %.0f %%",
			100*c.Off(), 100*c.CPU)
	}
	return row
}
