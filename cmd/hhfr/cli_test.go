package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

var update = flag.Bool("update", false, "write docs/cli.md, docs/json.md, its schema and an estimate anew")

// TestManual compares docs/cli.md, docs/json.md and its schema with the commands.
func TestManual(t *testing.T) {
	root := newRoot(&command.Global{})
	for name, want := range map[string]string{
		"docs/cli.md": manual(root), "docs/json.md": manualJSON(t, root), "cmd/hhfr/json.schema.json": manualSchema(t),
	} {
		path := shared.Testdata(t, "..", filepath.FromSlash(name))
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		}
		require.Equal(t, want, string(shared.Read(t, path)), "stale: go test ./cmd/hhfr -run TestManual -update")
	}
}

// TestPictureOfAnEstimate: README's picture of a terminal is drawn from what the command prints.
func TestPictureOfAnEstimate(t *testing.T) {
	code, printed, stderr := do(t, "estimate", shared.Testdata(t, "pcap", "pump.pcap"), "--price-per-mb", "0.40", "-q")
	require.Zero(t, code, stderr)
	path := shared.Testdata(t, "..", "docs", "pictures", "estimate.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(printed), 0o644))
	}
	require.Equal(t, printed, string(shared.Read(t, path)),
		"stale: go test ./cmd/hhfr -run TestPictureOfAnEstimate -update, then scripts/pictures.py")
}

func manual(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(manualHead)
	section(&b, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			section(&b, c)
			for _, sub := range c.Commands() {
				section(&b, sub)
			}
		}
	}
	return b.String()
}

func section(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```sh\n%s\n```\n\n%s\n\n", c.CommandPath(), c.Short+".", c.Example, c.Long)
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
		name := "`" + strings.TrimSpace("--"+f.Name+" "+cmdline.Placeholder(f)) + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		_, about := pflag.UnquoteUsage(f)
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, value, about)
	})
}

const manualHead = `# The command line

Made by ` + "`go test ./cmd/hhfr -run TestManual -update`" + ` from the commands themselves.
[json.md](json.md) has what they print with ` + "`-o json`" + `.

Data goes to stdout, all else to stderr. ` + "`-`" + ` is stdin or stdout, and is rejected where it can be
neither. The first Ctrl-C or SIGTERM makes a command finish with what it has so far, the second ends
it at once. SIGHUP does not end servers.

With ` + "`--log-format json`" + ` every line on stderr is an object with ` + "`time`" + `, ` + "`level`" + ` and
` + "`msg`" + `; an error has ` + "`exit_code`" + `, and ` + "`hint`" + ` if there is one. Values are strings,
numbers, true or false; all values of a key have the same type.

A flag that the command line does not set is taken from ` + "`HHFR_FLAG`" + ` (upper case, ` + "`_`" + ` for
` + "`-`" + `), otherwise from the file that ` + "`--config`" + ` names.

If ` + "`--dns`" + ` is set, in whatever way, names are looked up with that server alone; ` + "`--dns \"\"`" + `
resets it. Otherwise the system's resolver is asked. On Android, a program without cgo has no such
resolver: hhfr asks Android's own over its socket, ` + "`/dev/socket/dnsproxyd`" + `, and the answer is
final, even if it is that there is no such name. If that socket cannot be asked, hhfr asks the name
servers in Termux's ` + "`$PREFIX/etc/resolv.conf`" + `. The hosts file is consulted before any of these. This
was tested on simulated phones, never on a real one.

| exit code | |
|---|---|
| 0 | done |
| 1 | failed: a fault, a difference, nothing found |
| 2 | the command line is wrong |
| 3 | no connection, or no hhfr although ` + "`--require-hhfr`" + ` is set |
| 4 | malformed or undecodable input |
| 5 | partial: bytes or shapes missing, checks that fail, fate unknown; ` + "`--lenient`" + ` makes that 0 |
| 130 | interrupted, by Ctrl-C or SIGTERM; servers, and commands that run until a signal, exit with 0 after SIGTERM |
`

// TestHelpBeginsWithUsage: usage and examples are on the first screen of every help text.
func TestHelpBeginsWithUsage(t *testing.T) {
	root := newRoot(&command.Global{})
	for _, c := range append(cmdline.Below(root), root) {
		var b strings.Builder
		c.SetOut(&b)
		require.NoError(t, c.Help())
		lines := strings.Split(b.String(), "\n")
		assert.Contains(t, lines[:5], "Usage:", c.CommandPath())
		if c.Example != "" {
			assert.Contains(t, lines[:8], "Examples:", c.CommandPath())
		}
		if c.Long != "" {
			assert.Contains(t, b.String(), "\nAbout:\n"+cmdline.Wrapped(c.Long)+"\n", c.CommandPath())
		}
	}
}

// TestHelpFitsATerminal: nothing is wider than helpWidth except examples, which are for pasting,
// and lines of a single word.
func TestHelpFitsATerminal(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		var b strings.Builder
		c.SetOut(&b)
		require.NoError(t, c.Help())
		before, behind, _ := strings.Cut(b.String(), "Examples:\n")
		_, behind, _ = strings.Cut(behind, "\n\n")
		lines := strings.Split(before+behind, "\n")
		require.Greater(t, len(lines), 5)
		for _, line := range lines {
			if len(strings.Fields(line)) > 1 {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), cmdline.HelpWidth, "%s: %q", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot(&command.Global{}))
}

// The placeholder of a flag's value is a word for it, not a type of Go.
func TestPlaceholders(t *testing.T) {
	root := newRoot(&command.Global{})
	seen := 0
	for _, c := range append(cmdline.Below(root), root) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			seen++
			word := cmdline.Placeholder(f)
			assert.Equal(t, strings.ToUpper(word), word, "%s --%s", c.CommandPath(), f.Name)
			assert.Equal(t, f.Value.Type() == "bool", word == "", "%s --%s", c.CommandPath(), f.Name)
		})
	}
	assert.Greater(t, seen, 50)
}

func TestWrapped(t *testing.T) {
	word := strings.Repeat("x", 50)
	for _, c := range []struct{ text, want string }{
		{"short.\n", "short."},
		{"a line that\ngoes on.\nanother one:\n\n  entry   of a list\n",
			"a line that goes on.\nanother one:\n\n  entry   of a list"},
		{word + " é " + word, word + " é\n" + word},
		{"  name  " + word + " " + word, "  name  " + word + "\n        " + word},
		{"  a name  " + word + "\n          " + word, "  a name  " + word + "\n          " + word},
		{"  a name  goes\n          on\n  and  another", "  a name  goes on\n  and  another"},
		{"  no name\n    below", "  no name\n    below"},
		{word + word, word + word},
		{"", ""},
	} {
		assert.Equal(t, c.want, cmdline.Wrapped(c.text))
	}
}

// Errors that a script cannot provoke have their exit code and hint, too.
func TestCodeOf(t *testing.T) {
	conflict := &ctxstore.Error{Code: ctxstore.Conflict, URI: "urn:hhfr:outbox:1"}
	for _, c := range []struct {
		err  error
		code int
		hint string
	}{
		{conflict, exit.Failed, "another process"},
		{&ctxstore.Error{Code: ctxstore.Held, URI: "urn:hhfr:outbox:1"}, exit.Failed, "another process"},
		{&negotiate.Error{Code: negotiate.NoHHFR, Err: conflict}, exit.NoPeer, "another process"},
		{&negotiate.Error{Code: negotiate.NoHHFR}, exit.NoPeer, "without --require-hhfr"},
		{&negotiate.Error{Code: negotiate.OldStore}, exit.WrongUsage,
			"without FILEs and --resume finishes what the store has"},
		{&negotiate.Error{Code: negotiate.OtherRun}, exit.WrongUsage, "nothing was sent of these messages"},
		{exit.Signalled{Signal: os.Interrupt}, exit.Interrupted, ""},
		{exit.With(exit.Partial, exit.Signalled{Signal: syscall.SIGTERM}, "go on"), exit.Interrupted, "go on"},
		{&ctxstore.Error{Code: ctxstore.Invalid, At: "/a/file"}, exit.Failed, ""},
		{&ctxstore.Error{Code: ctxstore.Invalid, Hint: "write DIR"}, exit.WrongUsage, "write DIR"},
	} {
		code, hint := exit.CodeOf(c.err)
		assert.Equal(t, c.code, code, c.err)
		assert.Contains(t, hint, c.hint, c.err)
	}
}

// TestCompletion calls completion as the scripts of shells do.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		line, want string
	}{
		{"stream --transport ", "tcp\nudp\n:4\n"},
		{"stream --assurance e", "at-most-once\nat-least-once\nexactly-once\n:4\n"},
		{"replay x --as ", "soap\nhhfr\n:4\n"},
		{"decode --save-dir ", ":16\n"},
		{"version --log-format ", "text\njson\n:4\n"},
		{"help bench ", "compare\tWhat two runs differ in, and whether that is chance\n" +
			"load\tA service under the requests of many clients\n" +
			"report\tTables and pictures of what was measured, beside the papers'\n" +
			"session\tWhole sessions, on an emulated link or a network: hhfr beside plain SOAP\n:4\n"},
	} {
		var out, errs strings.Builder
		args := append([]string{"__complete"}, strings.Split(c.line, " ")...)
		require.Zero(t, execute(t.Context(), command.Env{Out: &out, Err: &errs}, args), c.line)
		assert.Equal(t, c.want, out.String(), c.line)
	}
}
