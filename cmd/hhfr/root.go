package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Env is what a command may use beside the network and the files that it is given.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	System   resolve.System // the zero value: nothing is known of it
	// SetLog, if given, is called with the logger for the standard library.
	SetLog func(*slog.Logger)
}

// The exit codes (docs/cli.md).
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoPeer      = 3
	exitMalformed   = 4
	exitPartial     = 5
	exitInterrupted = 130
)

// problem is an error with its exit code and an optional hint.
type problem struct {
	code int
	err  error
	hint string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// failure ends a command with a code, for an error; hint, if any, is the remedy.
func failure(code int, err error, hint string) error { return &problem{code, err, hint} }

// usage is the failure of a wrong command line.
func usage(err error, hint string) error { return failure(exitUsage, err, hint) }

// quiet ends a command with a code whose reason was reported already.
type quiet int

func (quiet) Error() string { return "" }

// codeOf returns the exit code of an error, and a hint. An interrupt takes precedence over what is
// missing because of it.
func codeOf(err error) (code int, hint string) {
	if code, hint = judge(err); errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	return code, hint
}

func judge(err error) (code int, hint string) {
	var q quiet
	var p *problem
	var f *flow.Error
	var n *negotiate.Error
	var s *ctxstore.Error
	switch {
	case err == nil:
		return exitDone, ""
	case errors.As(err, &q):
		return int(q), ""
	case errors.As(err, &p):
		return p.code, p.hint
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.Held}), errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}):
		code = exitFailed
		if errors.Is(err, &negotiate.Error{Code: negotiate.NoHHFR}) {
			code = exitNoPeer
		}
		return code, "does another process send with this store to the same service? Let it end, or name another store"
	case errors.As(err, &f) && f.Code == flow.Truncated:
		return exitPartial, ""
	case errors.As(err, &f) && f.Code != flow.ReadFailed:
		return exitMalformed, "captures are pcap and pcapng files, also in gzip; raw stream bytes are for " +
			"hhfr reconstruct"
	case errors.As(err, &n):
		switch n.Code {
		case negotiate.BadConfig:
			return exitUsage, ""
		case negotiate.NoHHFR:
			if session.MayPass(err) {
				return exitNoPeer, passingHint
			}
			return exitNoPeer, "without --require-hhfr and --ordered, and with --assurance at-most-once, the " +
				"messages go as plain SOAP"
		case negotiate.OtherRun:
			return exitUsage, "nothing was sent of these messages. To go on with an interrupted run name the " +
				"FILEs it had, " +
				"in its order; without --resume all of them are sent, after what the store still has of it"
		case negotiate.OldStore:
			return exitUsage, "nothing was sent of these messages. The same command without FILEs and " +
				"--resume finishes " +
				"what the store has, and prints the replies; then send what the service lacks"
		case negotiate.Unreachable:
			return exitNoPeer, unreachableHint(err)
		case negotiate.FateUnknown:
			return exitPartial, "the request was not sent again, since it may have been processed"
		}
	case errors.As(err, &s):
		if s.Code == ctxstore.Invalid && s.At == "" && s.URI == "" {
			return exitUsage, s.Hint // it cannot be a store
		}
		return exitFailed, s.Hint
	}
	return exitFailed, ""
}

// passingHint is the remedy for what may pass by itself: a guarantee is not given up for it.
const passingHint = "that may pass: try the same command again; --reconnect TIME waits longer for it"

// newRoot builds the command tree.
func newRoot(env Env, g *global) *cobra.Command {
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
			if err := fillFlags(c); err != nil {
				return err
			}
			if g.logFormat != "text" && g.logFormat != "json" {
				return usage(errors.New("--log-format is text or json, not "+g.logFormat), "")
			}
			if err := errors.Join(checkDashes(c), checkOutputs(env, c, args)); err != nil {
				return err
			}
			g.useResolver()
			if env.SetLog != nil {
				env.SetLog(g.logger())
			}
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.BoolVarP(&g.verbose, "verbose", "v", false, "report on stderr what happens")
	flags.BoolVarP(&g.quiet, "quiet", "q", false, "no summaries and warnings on stderr")
	flags.StringVar(&g.logFormat, "log-format", "text",
		"form of the lines on stderr: text, or json with one object per line")
	flags.Var(&g.dns, "dns", "DNS server to look up names with, instead of the system's resolver")
	flags.String("config", "", "file with lines flag = value, below [command] for one command; HHFR_FLAG variables "+
		"override it, the command line overrides both")
	root.Version = readVersion(env.System).line()
	root.SetHelpCommand(newHelp())
	root.SetHelpFunc(printHelp)
	root.SetUsageFunc(func(c *cobra.Command) error { return printUsage(c.OutOrStderr(), c) })
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newDemo(env, g), newServe(env, g), newNegotiate(env, g), newStream(env, g), newDecode(env, g),
		newEstimate(env, g), newReconstruct(env, g), newProxy(env, g), newReplay(env, g), newBench(env, g),
		newTranscode(env, g), newSchema(env, g), newContext(env, g), newCompletion(env), newVersion(env, g))
	completeValues(root)
	return root
}

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, env Env, args []string) int {
	g := &global{err: &together{w: env.Err}, system: env.System} // several loggers write to it
	root := newRoot(env, g)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return doneCode(ctx)
	}
	code, hint := codeOf(err)
	g.logFormat = askedFormat(c, args)
	text := g.message(err)
	var p *problem
	if code == exitFailed && !errors.As(err, &p) && isUsage(text) {
		code = exitUsage
		text, hint = explain(c, text)
	}
	if hint != "" {
		text = strings.ReplaceAll(text, " ("+hint+")", "") // a line of its own has it
	}
	lines := slices.Compact(strings.Split(text, "\n")) // one line for each error that happened
	g.fail(code, slices.DeleteFunc(lines, func(line string) bool { return line == "" }), hint)
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

// outputFlag adds -o with the formats of a command.
func outputFlag(c *cobra.Command, p *string, formats ...string) {
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
		return usage(errors.New("--output is one of "+strings.Join(formats, ", ")+", not "+*p), "")
	}
}
