// Command hhfr carries SOAP over thin links, shows what is on them, and measures what that brings.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // before anybody sees that the first one came: the second ends the process at once
		cancel(signalled{s})
	}()
	return execute(ctx, Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, SetLog: slog.SetDefault}, os.Args[1:])
}
