// Command hhfr carries SOAP over thin links, shows what is on them, and measures what that brings.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/hhfr/hhfr/internal/resolve"
)

func main() {
	os.Exit(run(resolve.Local(os.Getenv("PREFIX"))))
}

// run runs the command line of the process on a system, which tests make up.
func run(system resolve.System) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // before anybody sees that the first one came: the second ends the process at once
		cancel(signalled{s})
	}()
	env := Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, System: system, SetLog: slog.SetDefault}
	return execute(ctx, env, os.Args[1:])
}
