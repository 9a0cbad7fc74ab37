// Command hhfr carries SOAP over thin links, shows what is on them, and measures what that brings.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // the second signal ends the process at once
	}()
	env := Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	return execute(ctx, env, os.Args[1:], func(line string) { fmt.Fprintln(env.Err, line) })
}
