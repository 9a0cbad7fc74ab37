package cmdline

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// HelpWidth is the width of help texts, in columns: every terminal has that many.
const HelpWidth = 80

// NewHelp is cobra's help command, except that an unknown topic is an error, and that one topic is
// the JSON Schema of what commands print.
func NewHelp(jsonSchema string) *cobra.Command {
	find := func(c *cobra.Command, args []string) (*cobra.Command, error) {
		about, rest, err := c.Root().Find(args)
		if err == nil && len(rest) > 0 {
			err = errors.New("unknown command " + strings.Join(args, " "))
		}
		return about, err
	}
	return &cobra.Command{
		Use:   "help [COMMAND|json-schema]",
		Short: "Help about a command, or the JSON Schema of what commands print",
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"json-schema"}) {
				_, err := io.WriteString(c.OutOrStdout(), jsonSchema)
				return err
			}
			about, err := find(c, args)
			if err != nil {
				return err
			}
			return about.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []string,
			d cobra.ShellCompDirective) {
			if len(args) == 0 {
				names = append(names, cobra.CompletionWithDesc("json-schema", "The JSON Schema of what commands print"))
			}
			if about, err := find(c, args); err == nil {
				for _, sub := range about.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// PrintHelp prints the help of a command, wrapped to the width of a terminal: what it is, its
// usage, examples and flags, and behind that what there is to read.
func PrintHelp(c *cobra.Command, _ []string) {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s\n\n", Wrapped(c.Short))
	_ = PrintUsage(w, c)
	if c.Long != "" {
		fmt.Fprintf(w, "\nAbout:\n%s\n", Wrapped(c.Long))
	}
}

// PrintUsage prints how a command is used: its arguments, examples and flags.
func PrintUsage(w io.Writer, c *cobra.Command) error {
	var b strings.Builder
	part := func(title, text string) {
		if text = strings.TrimRight(text, " \n"); text != "" {
			fmt.Fprintf(&b, "%s:\n%s\n\n", title, text)
		}
	}
	if c.HasAvailableSubCommands() {
		part("Usage", "  "+c.CommandPath()+" COMMAND")
	} else {
		part("Usage", "  "+c.UseLine())
	}
	part("Examples", c.Example)
	var commands strings.Builder
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			fmt.Fprintf(&commands, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	part("Commands", Wrapped(commands.String()))
	part("Flags", Shown(c.LocalFlags()).FlagUsagesWrapped(HelpWidth))
	part("Global flags", Shown(c.InheritedFlags()).FlagUsagesWrapped(HelpWidth))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "%s COMMAND --help shows more about a command.\n", c.CommandPath())
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(b.String(), "\n"))
	return err
}

// entry matches the start of a list line: its name, and the column where its text is continued.
var entry = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ +(\S+(?: \S+)*? {2,})?`)
})

// textColumn is where the text of a list line begins.
func textColumn(line string) int { return utf8.RuneCountInString(entry().FindString(line)) }

// Wrapped breaks lines that are too long for help. A line that ends in the middle of a sentence
// continues in the next one, the text of a list line in one that begins below it.
func Wrapped(text string) string {
	var out []string
	open := false // the line before continues
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		last := len(out) - 1
		if open && line != "" && line[0] != ' ' || last >= 0 && continues(out[last], line) {
			line = out[last] + " " + strings.TrimLeft(line, " ")
			out = out[:last]
		}
		open = line != "" && line[0] != ' ' && !strings.HasSuffix(line, ".") && !strings.HasSuffix(line, ":")
		out = append(out, line)
	}
	for i, line := range out {
		out[i] = folded(line, strings.Repeat(" ", textColumn(line)))
	}
	return strings.Join(out, "\n")
}

// continues reports whether a line has more of the text of the list line before it: it begins where
// that does.
func continues(list, line string) bool {
	named := entry().FindStringSubmatch(list)
	return named != nil && named[1] != "" && textColumn(list) == len(line)-len(strings.TrimLeft(line, " "))
}

// folded breaks a line between words if it is too long, and indents the rest.
func folded(line, indent string) string {
	var b strings.Builder
	for utf8.RuneCountInString(line) > HelpWidth {
		runes := []rune(line)
		at := strings.LastIndexByte(string(runes[:HelpWidth+1]), ' ')
		if at <= len(indent) {
			break // a single word is longer than that
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = indent + line[at+1:]
	}
	return b.String() + line
}
