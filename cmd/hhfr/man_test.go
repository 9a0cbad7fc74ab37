package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/shared"
)

var manDir = flag.String("man", "", "folder to write man pages to")

// TestManPages makes a man page of each command, from the commands themselves. man has nothing to
// say against them, and they have all that the help texts have.
func TestManPages(t *testing.T) {
	dir := cmp.Or(*manDir, t.TempDir())
	root := newRoot(&command.Global{})
	var pages, wanted []string
	for _, c := range append(cmdline.Below(root), root) {
		if c.Name() == "help" {
			continue
		}
		name := filepath.Join(dir, manName(c)+".1")
		require.NoError(t, os.WriteFile(name, []byte(manPage(c)), 0o644))
		pages = append(pages, name)
		for line := range strings.Lines(c.Example) {
			wanted = append(wanted, strings.TrimSpace(line))
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { wanted = append(wanted, "--"+f.Name) })
	}
	require.Greater(t, len(pages), 15)
	man := shared.Program(t, "man")
	shown := exec.CommandContext(t.Context(), man, append([]string{"--warnings", "-l"}, pages...)...)
	shown.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=500")
	var errs strings.Builder
	shown.Stderr = &errs
	out, err := shown.Output()
	require.NoError(t, err, "%s", &errs)
	assert.Empty(t, errs.String())
	for _, text := range wanted {
		if text != "--help" {
			assert.Contains(t, string(out), text)
		}
	}
}

// manName is the name of a command's page: hhfr-bench-load.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is a command's page in the macros of man(7).
func manPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.nh\n.ad l\n", roff(strings.ToUpper(manName(c))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	usage := c.UseLine()
	if c.HasAvailableSubCommands() {
		usage = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(usage))
	b.WriteString(".SH DESCRIPTION\n")
	manProse(&b, cmp.Or(c.Long, c.Short+"."))
	manFlags(&b, "OPTIONS", cmdline.Shown(c.NonInheritedFlags()))
	manFlags(&b, "GLOBAL OPTIONS", cmdline.Shown(c.InheritedFlags()))
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		for line := range strings.Lines(c.Example) {
			b.WriteString(roff(strings.TrimSpace(line)) + "\n")
		}
		b.WriteString(".fi\n")
	}
	b.WriteString(".SH SEE ALSO\n" + strings.Join(manSeeAlso(c), ",\n") + "\n")
	return b.String()
}

// manProse writes paragraphs; lines that begin with a blank are a table, and stay as they are.
func manProse(b *strings.Builder, text string) {
	table := false
	for line := range strings.SplitSeq(text, "\n") {
		if is := strings.HasPrefix(line, " "); is != table {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[is])
			table = is
		}
		if line == "" {
			b.WriteString(".PP\n")
		} else {
			b.WriteString(roff(line) + "\n")
		}
	}
	if table {
		b.WriteString(".fi\n")
	}
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if word := cmdline.Placeholder(f); word != "" {
			name += " " + word
		}
		_, text := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(text))
	})
}

// manSeeAlso is the pages next to a command's.
func manSeeAlso(c *cobra.Command) (pages []string) {
	if c.HasParent() {
		pages = append(pages, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" {
			pages = append(pages, manName(sub))
		}
	}
	for i, p := range pages {
		pages[i] = `\fB` + roff(p) + `\fR(1)`
	}
	return pages
}

var roffSpecial = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, `'`, `\(aq`)

// roff is a line of text, in which nothing is a request or an escape.
func roff(line string) string {
	line = roffSpecial.Replace(line)
	if regexp.MustCompile(`^[.']`).MatchString(line) {
		line = `\&` + line
	}
	return line
}
