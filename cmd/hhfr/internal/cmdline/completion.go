package cmdline

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/wire"
)

// shells are the shells that cobra writes scripts for.
var shells = []struct {
	name  string
	write func(root *cobra.Command, to io.Writer) error
}{
	{"bash", func(root *cobra.Command, to io.Writer) error { return root.GenBashCompletionV2(to, true) }},
	{"zsh", func(root *cobra.Command, to io.Writer) error { return root.GenZshCompletion(to) }},
	{"fish", func(root *cobra.Command, to io.Writer) error { return root.GenFishCompletion(to, true) }},
	{"powershell", func(root *cobra.Command, to io.Writer) error { return root.GenPowerShellCompletionWithDesc(to) }},
}

// NewCompletion is the command that prints a script for a shell.
func NewCompletion(g *command.Global) *cobra.Command {
	c := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes hhfr's commands and flags in a shell",
		Long: `completion prints a script for a shell, which then completes commands,
flags and some of their values when you press the tab key.

  bash        source hhfr.bash in ~/.bashrc; needs the package bash-completion
  zsh         put _hhfr into a folder of $fpath, with compinit loaded
  fish        put hhfr.fish into ~/.config/fish/completions
  powershell  run hhfr.ps1 in $PROFILE`,
		Example: `  hhfr completion bash > hhfr.bash
  hhfr completion zsh > _hhfr
  hhfr completion fish > hhfr.fish
  hhfr completion powershell > hhfr.ps1`,
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)(c, args); err != nil {
				return exit.Usage(err, "name one of "+strings.Join(c.ValidArgs, ", "))
			}
			return nil
		},
		DisableFlagsInUseLine: true,
	}
	for _, s := range shells {
		c.ValidArgs = append(c.ValidArgs, s.name)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		for _, s := range shells {
			if s.name == args[0] {
				return s.write(c.Root(), g.Out)
			}
		}
		return nil
	}
	return c
}

// completeValues registers completions for flags with a small set of values, in all commands.
func completeValues(c *cobra.Command) {
	misbehaviors, _ := peer.Misbehaviors()
	admissible := []string{"loopback", "certificate", "bearer:", "everybody"}
	values := map[string][]string{
		"as": {"soap", "hhfr"}, "assurance": flags.Assurances(), "from": {"xml"}, "link": link.Names(),
		"log-format": {"text", "json"}, "mode": flags.Modes(), "misbehave": misbehaviors,
		"context": admissible, "admit": admissible,
		"negotiate":      {"everybody", "nobody", "certificate", "bearer:"},
		"representation": {"binary", "xml"}, "soap-rm": {"1.0", "1.1", "1.2", "all"},
		"addressing": {"2004/08", "2005/08"}, "service": {"concat", "sum"}, "soap": {"1.1", "1.2"},
		"transport": {"tcp", "udp"}, "without": wire.StageNames(), "wrap": {"1.1", "1.2"},
	}
	folders := []string{"dir", "save-dir", "write-streams"}
	// Registering fails only for a flag that does not exist, or has a completion already.
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if list, known := values[f.Name]; known {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
		if slices.Contains(folders, f.Name) {
			_ = c.MarkFlagDirname(f.Name)
		}
	})
	for _, sub := range c.Commands() {
		completeValues(sub)
	}
}
