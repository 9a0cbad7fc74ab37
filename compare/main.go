// Command compare compares hhfr with its alternatives, in one run on one machine: bytes per
// message, shapes in transit, the speed of split and join, that of the engine of sequences,
// messages over a link that loses, and sessions from their first connection on. `make compare` runs
// it. Its exit code is 1 if a goal that held before is missed.
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

	emulated "github.com/hhfr/hhfr/internal/link"
)

// Exit codes: as those of hhfr.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// options are the flags.
type options struct {
	only   string
	output string
	shared string
	rounds int
	slice  time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// parts are the measurements of a run.
var parts = []string{"bytes", "stages", "shapes", "speed", "strangers", "engine", "burst", "flow", "echo", "entry"}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.only, "only", "", strings.Join(parts, ", ")+"; all if empty")
	flags.StringVar(&o.output, "o", "text", "text or json")
	flags.StringVar(&o.shared, "shared", os.Getenv("HHFR_SHARED"),
		"folder with workloads and corpus; looked for beside the checkout if empty, generated messages where "+
			"there is none")
	flags.IntVar(&o.rounds, "rounds", 21, "rounds of speed; medians are taken over them")
	flags.DurationVar(&o.slice, "slice", 5*time.Millisecond, "least time of one contestant in one round")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case o.only != "" && !slices.Contains(parts, o.only):
		return o, fmt.Errorf("-only %q: one of %s", o.only, strings.Join(parts, ", "))
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %q: one of text, json", o.output)
	case o.rounds < 1 || o.slice <= 0:
		return o, errors.New("-rounds and -slice must be above 0")
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
	if err == nil {
		err = r.write(stdout, o.output)
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

// measure makes the measurements that the options select.
func measure(ctx context.Context, o options) (*report, error) {
	in, err := findInputs(o.shared)
	if err != nil {
		return nil, err
	}
	r := newReport(in)
	want := func(part string) bool { return o.only == "" || o.only == part }
	if want("bytes") {
		if r.Bytes, err = measureBytes(ctx, in); err != nil {
			return nil, fmt.Errorf("bytes: %w", err)
		}
	}
	if want("stages") {
		if r.Stages, err = measureStageSets(ctx, in); err != nil {
			return nil, fmt.Errorf("stages: %w", err)
		}
	}
	if want("shapes") && in.corpus != "" {
		if r.Shapes, err = measureShapes(ctx, in); err != nil {
			return nil, fmt.Errorf("shapes: %w", err)
		}
	}
	if want("speed") {
		if r.Speed, err = measureSpeed(ctx, in, o.rounds, o.slice); err != nil {
			return nil, fmt.Errorf("speed: %w", err)
		}
	}
	if want("strangers") {
		if r.Strangers, err = measureStrangers(ctx); err != nil {
			return nil, fmt.Errorf("strangers: %w", err)
		}
	}
	if want("engine") {
		if r.Engine, err = measureEngine(ctx); err != nil {
			return nil, fmt.Errorf("engine: %w", err)
		}
	}
	if want("burst") {
		if r.Burst, err = measureBurst(ctx, 200); err != nil {
			return nil, fmt.Errorf("burst: %w", err)
		}
	}
	if want("flow") {
		if r.Flow, err = measureFlow(ctx); err != nil {
			return nil, fmt.Errorf("flow: %w", err)
		}
	}
	if want("echo") {
		if r.Echo, err = measureEcho(ctx, 32<<20, 5); err != nil {
			return nil, fmt.Errorf("echo: %w", err)
		}
	}
	if want("entry") {
		if r.Entry, err = measureEntry(ctx, emulated.Names()); err != nil {
			return nil, fmt.Errorf("entry: %w", err)
		}
	}
	r.judge()
	return r, nil
}
