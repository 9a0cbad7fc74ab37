package main

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/bench"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/contexts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/decode"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/demo"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/estimate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/negotiate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/proxy"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/schema"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/stream"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/transcode"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
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
		PersistentPreRunE: func(c *cobra.Command, args []string) error {
			if err := cmdline.FillFlags(c); err != nil {
				return err
			}
			if g.LogFormat != "text" && g.LogFormat != "json" {
				return exit.Usage(errors.New("--log-format is text or json, not "+g.LogFormat), "")
			}
			if err := errors.Join(cmdline.CheckDashes(c), cmdline.CheckOutputs(g, c, args)); err != nil {
				return err
			}
			g.UseResolver()
			if g.SetLog != nil {
				g.SetLog(g.Logger())
			}
			return nil
		},
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
	root.AddCommand(demo.New(g), serve.New(g), negotiate.New(g), stream.New(g), decode.New(g),
		estimate.New(g), decode.NewReconstruct(g), proxy.New(g), stream.NewReplay(g), bench.New(g),
		transcode.New(g), schema.New(g), contexts.New(g), cmdline.NewCompletion(g), cmdline.NewVersion(g))
	cmdline.CompleteValues(root)
	return root
}

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, env command.Env, args []string) int {
	g := &command.Global{Env: env, Stderr: &command.Together{W: env.Err}} // several loggers write to it
	root := newRoot(g)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.DoneCode(ctx)
	}
	code, hint := exit.CodeOf(err)
	g.LogFormat = cmdline.AskedFormat(c, args)
	text := g.Message(err)
	var p *exit.Failure
	if code == exit.Failed && !errors.As(err, &p) && isUsage(text) {
		code = exit.WrongUsage
		text, hint = explain(c, text)
	}
	if hint != "" {
		text = strings.ReplaceAll(text, " ("+hint+")", "") // a line of its own has it
	}
	lines := slices.Compact(strings.Split(text, "\n")) // one line for each error that happened
	g.Fail(code, slices.DeleteFunc(lines, func(line string) bool { return line == "" }), hint)
	return code
}

// explain turns cobra's message about a wrong command line into a line and a hint.
func explain(c *cobra.Command, text string) (line, hint string) {
	line, more, _ := strings.Cut(text, "\n")
	if _, names, ok := strings.Cut(more, "Did you mean this?"); ok {
		return line, "did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	if !c.HasParent() {
		return line, "hhfr --help lists the commands"
	}
	return line, "usage: " + c.UseLine() + "; " + c.CommandPath() + " --help shows more"
}

// isUsage reports whether an error is one that cobra makes for a wrong command line; these have no
// type.
func isUsage(text string) bool {
	for _, beginning := range []string{"unknown command", "accepts ", "requires at least"} {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}
