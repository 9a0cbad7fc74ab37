package cmdline

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// Run is [Execute] until a signal interrupts it. A second one ends the process at once.
func Run(env command.Env, tree func(*command.Global) *cobra.Command, args []string) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // before the first signal is handled
		cancel(exit.Signalled{Signal: s})
	}()
	return Execute(ctx, env, tree, args)
}

// Execute runs a command line of this tree of commands, and returns its exit code.
func Execute(ctx context.Context, env command.Env, tree func(*command.Global) *cobra.Command, args []string) int {
	g := &command.Global{Env: env, Stderr: &command.Together{W: env.Err}} // several loggers write to it
	root := tree(g)
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(root)
	}
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.DoneCode(ctx)
	}
	code, hint := exit.CodeOf(err)
	g.LogFormat = AskedFormat(c, args)
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

// Prepare is what comes before every command: its flags are filled from variables and files, and
// checked.
func Prepare(g *command.Global) func(c *cobra.Command, args []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := FillFlags(c); err != nil {
			return err
		}
		if g.LogFormat != "text" && g.LogFormat != "json" {
			return exit.Usagef("", "--log-format is text or json, not %s", g.LogFormat)
		}
		if err := errors.Join(CheckDashes(c), CheckOutputs(g, c, args)); err != nil {
			return err
		}
		g.UseResolver()
		if g.SetLog != nil {
			g.SetLog(g.Logger())
		}
		return nil
	}
}
