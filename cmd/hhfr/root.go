package main

import (
	_ "embed"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/doctor"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/inspect"
)

// jsonSchema is the JSON Schema of what commands print with -o json (docs/json.md).
//
//go:embed json.schema.json
var jsonSchema string

// newRoot builds the command tree.
func newRoot(g *command.Global) *cobra.Command {
	root := &cobra.Command{
		Use:   "hhfr",
		Short: "SOAP over thin links: negotiate once, then only what changes travels",
		Long: `hhfr carries SOAP over thin, slow, lossy links, shows what is on them, and measures
the savings.

Two peers agree once, over plain SOAP, on everything about their messages that does not change. From
then on only what changes travels, as binary, over a stream. With a peer that does not know hhfr it
uses plain SOAP.

Exit codes: 0 done; 1 failed; 2 wrong command line; 3 no connection, or no hhfr although it is
required; 4 malformed input; 5 partial; 130 interrupted.`,
		Example: `  hhfr demo
  hhfr serve --record server.pcapng
  hhfr stream http://127.0.0.1:8080/echo message.xml --repeat 10
  hhfr decode server.pcapng`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: cmdline.Prepare(g),
	}
	flags := root.PersistentFlags()
	flags.BoolVarP(&g.Verbose, "verbose", "v", false, "report on stderr what happens")
	flags.BoolVarP(&g.Quiet, "quiet", "q", false, "no summaries and warnings on stderr")
	flags.StringVar(&g.LogFormat, "log-format", "text",
		"form of the lines on stderr: text, or json with one object per line")
	flags.Var(&g.DNS, "dns", "DNS server to look up names with, instead of the system's resolver")
	flags.String("config", "", "file with lines flag = value, below [command] for one command; HHFR_FLAG variables "+
		"override it, the command line overrides both")
	root.Version = cmdline.ReadVersion(g.System).Line()
	root.SetHelpCommand(cmdline.NewHelp(jsonSchema))
	root.SetHelpFunc(cmdline.PrintHelp)
	root.SetUsageFunc(func(c *cobra.Command) error { return cmdline.PrintUsage(c.OutOrStderr(), c) })
	root.SetIn(g.In)
	root.SetOut(g.Out)
	root.SetErr(g.Err)
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.AddCommand(append(commands.All(g), inspect.New(g), doctor.New(g), cmdline.NewCompletion(g),
		cmdline.NewVersion(g))...)
	return root
}
