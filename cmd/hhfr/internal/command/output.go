package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// PlaceholderOf is the annotation of a flag whose value has another placeholder at its command than
// elsewhere.
const PlaceholderOf = "hhfr placeholder"

// OutputFlag adds -o with text, json, and more formats of a command.
func OutputFlag(c *cobra.Command, p *string, more ...string) {
	FormatFlag(c, p, append([]string{"text", "json"}, more...)...)
}

// FormatFlag adds -o with the formats of a command.
func FormatFlag(c *cobra.Command, p *string, formats ...string) {
	c.Flags().StringVarP(p, "output", "o", formats[0], "form of the data on stdout: "+strings.Join(formats, ", "))
	// fails only for a flag that does not exist
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		for _, f := range formats {
			if *p == f {
				if before != nil {
					return before(c, args)
				}
				return nil
			}
		}
		return exit.Usagef("", "--output is one of %s, not %s", strings.Join(formats, ", "), *p)
	}
}
