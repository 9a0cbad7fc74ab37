// Command compare compares hhfr with its alternatives, in one run on one machine, by what others
// have of it: the public packages and the command hhfr. `make compare` runs it. Its exit code is 1
// if a goal that held before is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/compare/internal/real"
)

// Exit codes: as those of hhfr.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// options are the flags.
type options struct {
	only     string
	output   string
	shared   string
	rounds   int
	slice    time.Duration
	idle     time.Duration
	sessions int
	real     string
}

// processes are what this program is when it has started itself, by the first argument.
var processes = map[string]sideProcess{
	contestantArg: runContestant,
	proxyArg:      runProxy,
	idleArg:       runIdle,
	bareArg:       runBare,

	real.TunnelArg: real.RunTunnel,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var code int
	if len(os.Args) > 1 && processes[os.Args[1]] != nil {
		code = runProcess(ctx, processes[os.Args[1]])
	} else {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// sideProcess is one side of a measurement, in a process of its own.
type sideProcess func(ctx context.Context, args []string, in io.Reader, out io.Writer) error

// runProcess runs one with the arguments after its name.
func runProcess(ctx context.Context, p sideProcess) (code int) {
	if err := p(ctx, os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compare: error:", err)
		return exitFailed
	}
	return exitDone
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.only, "only", "", strings.Join(partNames(), ", ")+"; all if empty")
	flags.StringVar(&o.output, "o", "text", "text or json")
	flags.StringVar(&o.shared, "shared", os.Getenv("HHFR_SHARED"),
		"folder with workloads and corpus; looked for beside the checkout if empty, generated messages where "+
			"there is none")
	flags.IntVar(&o.rounds, "rounds", 21, "rounds of speed; medians are taken over them")
	flags.DurationVar(&o.slice, "slice", 5*time.Millisecond, "least time of one contestant in one round")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long processes are idle before their memory is read")
	flags.IntVar(&o.sessions, "sessions", 1000, "how many sessions are idle at a server, which takes 1024")
	flags.StringVar(&o.real, "real", "ci", "cells of real clients: ci, all, or those with this in their names, "+
		"as in \"zeep to cxf\"")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case o.only != "" && !slices.Contains(partNames(), o.only):
		return o, fmt.Errorf("-only %q: one of %s", o.only, strings.Join(partNames(), ", "))
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %q: one of text, json", o.output)
	case o.rounds < 1 || o.slice <= 0 || o.idle < 0 || o.sessions < 1:
		return o, errors.New("-rounds, -slice and -sessions must be above 0, and -idle not below")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare: error:", err)
		return exitUsage
	}
	r, err := measure(ctx, o)
	if r != nil {
		err = errors.Join(err, r.write(stdout, o.output))
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare: error:", err)
		return exitFailed
	}
	if missed := r.missed(); missed > 0 {
		fmt.Fprintf(stderr, "compare: error: %d goals missed\n", missed)
		return exitFailed
	}
	return exitDone
}

// measure makes the measurements that the options select. One that fails leaves the others as they
// are; its error is among those returned.
func measure(ctx context.Context, o options) (*results, error) {
	in, err := findInputs(o.shared)
	if err != nil {
		return nil, err
	}
	r := newReport(in)
	r.Idle = o.idle
	for _, p := range parts {
		if o.only == "" || o.only == p.name {
			if one := p.measure(ctx, in, o, r); one != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", p.name, one))
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	r.judge()
	return r, err
}
