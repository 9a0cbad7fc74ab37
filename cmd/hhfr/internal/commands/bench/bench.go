// Package bench is hhfr bench.
package bench

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	var short bool
	var save string
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure what hhfr brings",
		Long: `bench repeats the experiments of the papers, and your own ones, on emulated links and
on real networks. --quick measures a little of each within a minute, and prints one table, the
papers beside this machine, and a chart.`,
		Example: "  hhfr bench --quick\n  hhfr bench session --service sum --sizes 10 --n 1,5,10",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if short {
				return quick(c.Context(), g, save)
			}
			return c.Help()
		},
	}
	c.Flags().BoolVar(&short, "quick", false, "measure a little of everything")
	saveFlag(c.Flags(), &save)
	c.AddCommand(newBenchSession(g), newBenchLoad(g), newReport(g), newCompare(g))
	return c
}

// saveFlag is where commands write what they measured.
func saveFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "save", "", "append what was measured to this file, a record a line")
}
