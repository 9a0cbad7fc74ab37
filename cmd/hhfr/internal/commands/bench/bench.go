// Package bench is hhfr bench.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/link"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure what hhfr brings",
		Long:    "bench repeats the experiments of the papers, and your own ones, on emulated links.",
		Example: "  hhfr bench session --service sum --sizes 10 --n 1,5,10",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchSession(g), newBenchLoad(g), newReport(g), newCompare(g))
	return c
}

func newBenchSession(g *command.Global) *cobra.Command {
	var cfg bench.SessionConfig
	var service, output string
	var ways []string
	c := &cobra.Command{
		Use:   "session",
		Short: "Whole sessions on an emulated link: hhfr beside plain SOAP",
		Long: `session runs the sessions of tables 2 to 5 of the HHFR papers on an emulated
link: with hhfr, with hhfr whose messages are queued without waiting for replies, with plain SOAP on
a new connection for each message, as in the papers, and with plain SOAP on a kept connection. For a
thin link the clock runs faster than real time, for a fast one slower; the times printed are those
of the link. Each time is compared with the time that the session's own bytes and round trips
take. A session whose time is more than 10 % off, or in which computing took more than 5 % of the
time, is rerun at half the speed, up to twice. If it is still off, it is marked, and the exit code
is 1. The papers' numbers are printed beside the measured ones.

--ways chooses other ways for messages to travel, or all. Ways with hhfr are named after the mode in
which the session is opened: explicit, first-call, or met (the peers had a session before); with
-tls they are in TLS 1.3. Ways with plain SOAP use HTTP/1.1: soap-new opens a connection for each
message, soap-kept uses one for all; https- is the same in TLS 1.3, https-resumed- in TLS that
resumes an earlier session; -gzip compresses. h2c- and h2- use HTTP/2 without and with TLS. Ways
that end in -queued do not wait for replies. The last table says from how many messages on, among
the session lengths measured, hhfr is at least as fast as plain SOAP of the same kind (against
gzip: within 1 %).

The cost of a message is the slope of the time over sessions of all lengths. A single length has no
slope; a slope that is not above zero is reported but not used.

With --transport udp streams go over datagrams, which the link may lose, reorder and repeat: --link
14k4,loss=5%,reorder=1%,seed=7. The column OFF then shows what this costs in addition to the
bytes. Plain SOAP is left out: its TCP is emulated on this link, and loses nothing.`,
		Example: `  hhfr bench session
  hhfr bench session --service sum --sizes 10 --n 1,5,10 --link gprs -o json
  hhfr bench session --service echo --ways all --n 1,2,4 --link edge
  hhfr bench session --service sum --sizes 10 --n 10,50 --transport udp --link 14k4,loss=5%,seed=7`,
		Args: command.Takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			if service != "" {
				cfg.Services = []string{service}
			}
			cfg.Ways = waysNamed(ways)
			return runBenchSession(c.Context(), g, cfg, output)
		},
	}
	f := c.Flags()
	f.StringVar(&service, "service", "",
		"concat, sum, or echo, which returns floats unchanged; empty: concat and sum")
	f.StringSliceVar(&ways, "ways", names(bench.PaperWays),
		"how messages travel: "+strings.Join(names(bench.Ways()), ", ")+"; all: all of them")
	f.IntSliceVar(&cfg.Sizes, "sizes", nil, "items in a message; empty: those of the papers")
	f.IntSliceVar(&cfg.Counts, "n", nil, "messages in a session; empty: those of the papers")
	network.ClockedLinkFlags(f, &cfg.Link, "14k4", &cfg.Speed)
	f.StringVar(&cfg.Transport, "transport", "tcp", "transport of streams: tcp or udp")
	command.OutputFlag(c, &output)
	return c
}

// allWays is the value for all transports.
const allWays = "all"

func waysNamed(list []string) (ways []bench.SessionWay) {
	if slices.Contains(list, allWays) {
		return bench.Ways()
	}
	for _, name := range list {
		ways = append(ways, bench.SessionWay(name))
	}
	return ways
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

func runBenchSession(ctx context.Context, g *command.Global, cfg bench.SessionConfig, output string) error {
	ctx, out, stop := printing.NewPrintout(ctx, g.Out)
	defer stop()
	g.Out = out
	if output == "text" {
		cfg.Each = cellLines(out)
	}
	r, err := bench.Session(ctx, cfg)
	var profile *link.Error
	switch {
	case errors.Is(err, &link.Error{Code: link.Unsupported}):
		return exit.Usage(err, "--transport udp carries streams by datagrams")
	case errors.As(err, &profile), errors.Is(err, bench.ErrConfig):
		return exit.Usage(err, "")
	case r == nil:
		return err
	case out.Err != nil:
		return out.Err
	}
	if output == "json" {
		if werr := g.JSON(BenchReport{1, r}); werr != nil {
			return werr
		}
		return err
	}
	overheadLines(g.Out, r.Overheads)
	modelLines(g.Out, r.Models)
	breakEvenLines(g.Out, r.BreakEvens)
	for _, m := range r.Models {
		for _, doubt := range m.Doubts {
			g.Warn("%s", doubt)
		}
	}
	g.Note("link %s, streams over %s, clock %g times as fast, computing took %.1f %% of the time",
		r.Link, r.Transport, r.Speed, 100*r.CPU)
	if out.Err != nil {
		return out.Err
	}
	if errors.Is(err, bench.ErrNotTheLink) {
		return exit.With(exit.Failed, err, "see --speed, and what else runs on this machine")
	}
	return err
}

// cellLines prints a table, one line per session as it ends.
func cellLines(w io.Writer) func(bench.Cell) {
	const head, line = "%-7s %5s %5s %-24s %10s %10s %7s %9s %9s %10s\n",
		"%-7s %5d %5d %-24s %10.1f %10.1f %6.1f%% %9d %9d %10s%s\n"
	begun := false
	return func(c bench.Cell) {
		if !begun {
			fmt.Fprintf(w, head, "SERVICE", "ITEMS", "N", "WAY", "MS", "EXPECTED", "OFF", "SENT", "RECEIVED",
				"PAPER MS")
		}
		begun = true
		mark := ""
		if !c.Good() {
			mark = fmt.Sprintf("  NOT THE LINK'S (computing: %.0f %%)", 100*c.CPU)
		}
		fmt.Fprintf(w, line, c.Service, c.Size, c.N, c.Way, c.Millis, c.Expected, 100*c.Off(), c.Sent, c.Received,
			known("%.0f", c.Paper), mark)
	}
}

// overheadLines prints the costs beside the messages.
func overheadLines(w io.Writer, list []bench.Overhead) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(w, "\nWhat the papers' costs beside the messages are here: a header of 847 bytes set in a context\n"+
		"store, and read (Oa), negotiation with a schema of 326 bytes (Ob), and what the first message\n"+
		"with a shape takes more than the second (Oc, with the computing time of that shape).\n")
	const line = "%-7s %-24s %9s %9s %9s %9s %9s %9s %9s\n"
	fmt.Fprintf(w, line, "COST", "LINK", "MS", "REQUEST", "SENT", "RECEIVED", "COMPUTE", "PAPER MS", "REQUEST")
	for _, o := range list {
		fmt.Fprintf(w, line, o.Name, o.Link, fmt.Sprintf("%.1f", o.Millis), known("%.0f", float64(o.Request)),
			fmt.Sprint(o.Sent), fmt.Sprint(o.Received), known("%.3f", o.Compute), known("%.0f", o.Paper),
			known("%.0f", float64(o.PaperReq)))
	}
}

// modelLines prints the cost model; the papers' model follows ours where they have one.
func modelLines(w io.Writer, models []bench.Model) {
	if len(models) == 0 {
		return
	}
	const line = "%-7s %5v %9s %9s %9s %9s %9s %9s %9s %9s %9s\n"
	fmt.Fprint(w, "\nMilliseconds a message, from sessions of all lengths (T1: hhfr, queued or not; T2: SOAP on\n"+
		"new and on kept connections), before the first (OB; the papers: OA+OB), after how many messages hhfr is\n"+
		"faster (N: queued against SOAP on new connections, as in the papers; not queued against SOAP\n"+
		"on new and on kept connections; ALL: as N queued, with Oa and Oc added). -: not known.\n")
	fmt.Fprintf(w, line, "SERVICE", "ITEMS", "T1", "T1 QUEUED", "T2 NEW", "T2 KEPT", "OB", "N QUEUED", "N NEW",
		"N KEPT", "ALL")
	for _, m := range models {
		fmt.Fprintf(w, line, m.Service, m.Size, known("%.0f", m.T1), known("%.0f", m.T1Queued), known("%.0f", m.T2New),
			known("%.0f", m.T2Kept), known("%.0f", m.Setup),
			known("%.2f", m.BreakEvenQueued), known("%.2f", m.BreakEvenNew), known("%.2f", m.BreakEvenKept),
			known("%.2f", m.BreakEvenAll))
		if m.PaperSetup > 0 {
			fmt.Fprintf(w, line, " paper", "", "-", known("%.0f", m.PaperT1), known("%.0f", m.PaperT2), "-",
				known("%.0f", m.PaperSetup), known("%.2f", m.PaperBreakEven), "-", "-",
				known("%.2f", m.PaperBreakEven))
		}
	}
}

// breakEvenLines prints the number of messages from which hhfr is as fast as plain SOAP.
func breakEvenLines(w io.Writer, list []bench.BreakEven) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(w, "\nFrom how many messages on hhfr is as fast, of the lengths measured, and the time of the\n"+
		"shortest and of the longest session to that of plain SOAP. -: at none of these lengths.\n")
	fmt.Fprintf(w, "%-7s %5s %-24s %-24s %5s %9s %9s\n", "SERVICE", "ITEMS", "WAY", "AGAINST", "N", "SHORTEST",
		"LONGEST")
	for _, b := range list {
		fmt.Fprintf(w, "%-7s %5d %-24s %-24s %5s %9.3f %9.3f\n", b.Service, b.Size, b.Way, b.Against,
			known("%.0f", float64(b.N)), b.First, b.Last)
	}
}

// known formats a figure, or a dash for a missing one.
func known(format string, figure float64) string {
	if figure <= 0 {
		return "-"
	}
	return fmt.Sprintf(format, figure)
}
