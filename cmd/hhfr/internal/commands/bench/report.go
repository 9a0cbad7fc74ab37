package bench

import (
	"bytes"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/report"
)

func newReport(g *command.Global) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "report FILE…",
		Short: "Tables and pictures of what was measured, beside the papers'",
		Long: `report reads files that bench --save wrote, and makes of them the tables and
figures of the papers, with what the papers measured beside it: times of whole sessions, bytes,
costs beside the messages, and the load of many clients. A page in HTML needs nothing beside it,
and no network. csv has a row for each figure of each repeat.`,
		Example: `  hhfr bench report phone.jsonl
  hhfr bench report phone.jsonl desktop.jsonl -o html > report.html`,
		Args: command.Takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := input.Once(args); err != nil {
				return err
			}
			var runs []*report.Measurement
			for _, name := range args {
				of, err := readRuns(c.Context(), g, name)
				if err != nil {
					return err
				}
				runs = append(runs, of...)
			}
			return write(g, output, func(w io.Writer) error {
				if output == "csv" {
					return report.WriteCSV(w, runs)
				}
				return report.Write(w, output, report.Make(runs))
			})
		},
	}
	command.FormatFlag(c, &output, "text", "html", "csv", "markdown")
	return c
}

func newCompare(g *command.Global) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "What two runs differ in, and whether that is chance",
		Long: `compare reads two files that bench --save wrote: of a phone and a desktop, of
today and last month. For each figure that both have it prints the medians of the repeats and how
probable such a difference is without a cause (Mann and Whitney's U test). From four repeats each on
a difference can be told from chance.`,
		Example: "  hhfr bench compare desktop.jsonl phone.jsonl",
		Args:    command.Takes("BEFORE", "AFTER"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := input.Once(args); err != nil {
				return err
			}
			before, err := readRuns(c.Context(), g, args[0])
			if err != nil {
				return err
			}
			after, err := readRuns(c.Context(), g, args[1])
			if err != nil {
				return err
			}
			list, err := report.Compare(before, after)
			if err != nil {
				return exit.With(exit.Failed, err, "bench report shows what each of them has")
			}
			return write(g, output, func(w io.Writer) error { return report.Write(w, output, list) })
		},
	}
	command.FormatFlag(c, &output, "text", "html", "markdown")
	return c
}

// readRuns reads the runs of a file, or of stdin for -.
func readRuns(ctx context.Context, g *command.Global, name string) ([]*report.Measurement, error) {
	in, err := input.Open(ctx, g, name, "what bench --save wrote")
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	runs, err := report.Read(name, in)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, exit.Withf(exit.Malformed, "it takes files that hhfr bench --save wrote", "%s: %w", name, err)
	}
	return runs, nil
}

// write writes what made makes, in one piece. What files say is shown without what a terminal would
// obey.
func write(g *command.Global, format string, made func(io.Writer) error) error {
	var out bytes.Buffer
	if err := made(&out); err != nil {
		return err
	}
	text := out.String()
	if format != "html" {
		text = printing.Lines(text)
	}
	_, err := io.WriteString(g.Out, text)
	return err
}
