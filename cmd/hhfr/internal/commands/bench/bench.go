// Package bench is hhfr bench.
package bench

import (
	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure what hhfr brings",
		Long: "bench repeats the experiments of the papers, and your own ones, on emulated links and on real " +
			"networks.",
		Example: "  hhfr bench session --service sum --sizes 10 --n 1,5,10",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchSession(g), newBenchLoad(g), newReport(g), newCompare(g))
	return c
}
