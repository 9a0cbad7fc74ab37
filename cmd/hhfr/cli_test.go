package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

// TestManual holds docs/cli.md against the commands as they are.
func TestManual(t *testing.T) {
	path := shared.Testdata(t, "..", "docs", "cli.md")
	root := newRoot(Env{})
	want := manual(root) + manualJSON(t, root)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	require.Equal(t, want, string(shared.Read(t, path)), "stale: go test ./cmd/hhfr -run TestManual -update")
}

func manual(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(manualHead)
	section(&b, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			section(&b, c)
		}
	}
	return b.String()
}

func section(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n%s\n\n```sh\n%s\n```\n\n", c.CommandPath(), c.Short+".", c.Long, c.Example)
	flags := c.NonInheritedFlags()
	if !c.HasParent() {
		flags = c.PersistentFlags()
	}
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, value, f.Usage)
	})
}

const manualHead = `# The command line

Made by ` + "`go test ./cmd/hhfr -run TestManual -update`" + ` from the commands themselves.

Data goes to stdout, all else to stderr. ` + "`-`" + ` is stdin or stdout. The first Ctrl-C ends a command with what there is, the second at once.
A flag that the command line does not set is taken from ` + "`HHFR_FLAG`" + ` (upper case, ` + "`_`" + ` for ` + "`-`" + `), else from the file that ` + "`--config`" + ` names.

| exit code | |
|---|---|
| 0 | done |
| 1 | failed: a fault, a difference, nothing found |
| 2 | the command line is wrong |
| 3 | no connection, or no hhfr although ` + "`--require-hhfr`" + ` |
| 4 | malformed or undecodable input |
| 5 | partial: octets or shapes missing, checks that fail, fate unknown, interrupted; ` + "`--lenient`" + ` makes that 0 |
`
