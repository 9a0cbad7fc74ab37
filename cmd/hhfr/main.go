// Command hhfr carries SOAP over thin links, shows what is on them, and measures the savings.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/resolve"
)

func main() {
	os.Exit(run(resolve.Local(os.Getenv("PREFIX")), os.Stdout, os.Stderr))
}

// run runs the command line of the process on a system; tests pass what is not that of the process.
func run(system resolve.System, out, errs io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // before the first signal is handled: the second ends the process at once
		cancel(exit.Signalled{Signal: s})
	}()
	env := command.Env{In: os.Stdin, Out: out, Err: errs, System: system, SetLog: slog.SetDefault}
	return execute(ctx, env, os.Args[1:])
}
