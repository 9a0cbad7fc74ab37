// Command hhfr carries SOAP over thin links, shows what is on them, and measures the savings.
package main

import (
	"os"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
)

func main() {
	os.Exit(cmdline.Run(command.ProcessEnv(os.Getenv("PREFIX")), newRoot, os.Args[1:]))
}
