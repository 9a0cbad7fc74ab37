package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/bench"
)

func newBench(env Env, g *global) *cobra.Command {
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure what hhfr brings",
		Long:    "bench repeats the papers' experiments, and one's own, on emulated links.",
		Example: "  hhfr bench session --service sum --sizes 10 --n 1,5,10",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchSession(env, g))
	return c
}

func newBenchSession(env Env, g *global) *cobra.Command {
	var cfg bench.SessionConfig
	var service, output string
	c := &cobra.Command{
		Use:   "session",
		Short: "Whole sessions on an emulated link: hhfr beside plain SOAP",
		Long: `session lives through the sessions of tables 2 to 5 of the HHFR papers on an emulated link, with hhfr, with plain SOAP on a new connection for each message, as the papers did,
and on one that is kept. The clock runs many times faster than the link; the times are those of the link. The papers' numbers stand beside. Exit code 1: this machine computes too slowly
for the clock, so that the times are not those of the link alone; make --speed smaller.`,
		Example: `  hhfr bench session
  hhfr bench session --service sum --sizes 10 --n 1,5,10 --link gprs -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if service != "" {
				cfg.Services = []string{service}
			}
			return runBenchSession(c.Context(), env, g, cfg, output)
		},
	}
	f := c.Flags()
	f.StringVar(&service, "service", "", "concat or sum; empty: both")
	f.IntSliceVar(&cfg.Sizes, "sizes", nil, "items in a message; empty: those of the papers")
	f.IntSliceVar(&cfg.Counts, "n", nil, "messages in a session; empty: those of the papers")
	f.StringVar(&cfg.Link, "link", "14k4", "the link: 14k4, gprs, edge, 3g, geo, lte or wifi")
	f.IntVar(&cfg.Speed, "speed", 20, "how many times faster than the link the clock runs")
	outputFlag(c, &output, "text", "json")
	return c
}

func runBenchSession(ctx context.Context, env Env, g *global, cfg bench.SessionConfig, output string) error {
	const head, line = "%-7s %5s %5s %-10s %10s %10s %7s %9s %9s %10s\n", "%-7s %5d %5d %-10s %10.0f %10.0f %6.1f%% %9d %9d %10s\n"
	if output == "text" {
		fmt.Fprintf(env.Out, head, "SERVICE", "ITEMS", "N", "WAY", "MS", "EXPECTED", "OFF", "SENT", "RECEIVED", "PAPER MS")
		cfg.Each = func(c bench.Cell) {
			paper := "-"
			if c.Paper > 0 {
				paper = fmt.Sprintf("%.0f", c.Paper)
			}
			fmt.Fprintf(env.Out, line, c.Service, c.Size, c.N, c.Way, c.Millis, c.Expected, 100*c.Off(), c.Sent, c.Received, paper)
		}
	}
	r, err := bench.Session(ctx, cfg)
	if r == nil {
		return usage(err, "")
	}
	if output == "json" {
		if werr := writeJSON(env.Out, map[string]any{"version": 1, "report": r}); werr != nil {
			return werr
		}
		return err
	}
	fmt.Fprintf(env.Out, "\n%-7s %5s %9s %9s %9s %9s %12s %12s %12s\n", "SERVICE", "ITEMS", "T1", "T2 NEW", "T2 KEPT", "OA+OB", "N BE NEW", "N BE KEPT", "N BE PAPER")
	for _, m := range r.Models {
		fmt.Fprintf(env.Out, "%-7s %5d %9.0f %9.0f %9.0f %9.0f %12.2f %12.2f %12.2f\n", m.Service, m.Size, m.T1, m.T2New, m.T2Kept, m.Setup, m.BreakEvenNew, m.BreakEvenKept, m.PaperBreakEven)
	}
	if !g.quiet {
		fmt.Fprintf(env.Err, "hhfr: link %s, clock %d times faster, computing took %.1f %% of the time\n", r.Link, r.Speed, 100*r.CPU)
	}
	return err
}
