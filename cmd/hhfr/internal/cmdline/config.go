// Package cmdline is the command line around the commands: values of flags from files and
// variables, help, completion, errors, and what a command must not overwrite.
package cmdline

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// Settings are the lines of a --config file, in order.
type Settings []setting

// setting is the value of a flag, for one command or, without a command name, for all. Without a
// flag it is the line that names the command.
type setting struct {
	Line                 int
	Command, Flag, Value string
}

// Of returns a command's setting for a flag: its own, otherwise that of all commands, otherwise the
// zero value. The last line counts.
func (s Settings) Of(command, flag string) (found setting) {
	for _, one := range s {
		if one.Flag == flag && (one.Command == command || one.Command == "" && found.Command == "") {
			found = one
		}
	}
	return found
}

// readConfig reads a --config file of lines `flag = value`. Lines after `[command]` are for that
// command alone; # begins a comment.
func readConfig(name string) (all Settings, err error) {
	if name == "-" {
		return nil, exit.Usagef("", "--config -: %s", inputFlag)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }()
	command := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if inner, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(inner, "]") {
			command = strings.TrimSuffix(inner, "]")
			all = append(all, setting{Line: n, Command: command})
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, exit.Usagef("", "%s: %q is not of the form flag = value", Place(name, n), line)
		}
		all = append(all, setting{n, command, strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"`)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return all, nil
}

// Place names a line of a --config file.
func Place(name string, line int) string { return fmt.Sprintf("--config %s, line %d", name, line) }

// SectionOf is the name of a command in a --config file.
func SectionOf(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "HHFR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FillFlags sets the flags that the command line does not set: from HHFR_* variables, otherwise
// from the --config file.
func FillFlags(c *cobra.Command) error {
	name := ConfigName(c)
	var file Settings
	if name != "" {
		var err error
		if file, err = OpenConfig(c.Root(), name); err != nil {
			return err
		}
	}
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || failed != nil {
			return
		}
		if value := os.Getenv(variable(f.Name)); value != "" {
			if err := c.Flags().Set(f.Name, value); err != nil {
				failed = exit.Usage(ValueError(variable(f.Name), err), "")
			}
			return
		}
		failed = file.Fill(c.Flags(), SectionOf(c), f, name)
	})
	return failed
}

// ConfigName is the name of the --config file of a command line; empty without one.
func ConfigName(c *cobra.Command) string {
	return cmp.Or(c.Flags().Lookup("config").Value.String(), os.Getenv(variable("config")))
}

// OpenConfig reads and checks a --config file.
func OpenConfig(root *cobra.Command, name string) (Settings, error) {
	file, err := readConfig(name)
	if err == nil {
		err = file.check(root, name)
	}
	return file, err
}

// routeSection is how the sections of routes in a --config file begin; the name of a route follows.
const routeSection = "proxy route "

// KeysOfRoutes annotates the command that has routes, with what their sections may set.
const KeysOfRoutes = "keys of routes"

// RouteName returns the name of the route that a section is; false: it is another section.
func RouteName(section string) (string, bool) {
	name, ok := strings.CutPrefix(section, routeSection)
	name = strings.TrimSpace(name)
	return name, ok && name != ""
}

// InFile marks the flags that are set by the --config file.
const InFile = "config"

// Fill sets a flag of a command as the file does, if it does.
func (s Settings) Fill(flags *pflag.FlagSet, command string, f *pflag.Flag, name string) error {
	one := s.Of(command, f.Name)
	if one.Value == "" {
		return nil
	}
	if err := flags.Set(f.Name, one.Value); err != nil {
		return exit.Usage(ValueError(Place(name, one.Line)+", "+f.Name, err), "")
	}
	return flags.SetAnnotation(f.Name, InFile, []string{})
}

// check rejects names that no command has: they are typing errors.
func (s Settings) check(root *cobra.Command, file string) error {
	known := map[string][]string{"": flagsBelow(root)}
	var commands, keys []string
	for _, c := range Below(root) {
		if list, ok := c.Annotations[KeysOfRoutes]; ok {
			keys = strings.Fields(list)
		}
		known[SectionOf(c)] = slices.Concat(FlagNames(root.PersistentFlags()), FlagNames(c.LocalFlags()))
		commands = append(commands, SectionOf(c))
	}
	for _, one := range s {
		if _, ok := RouteName(one.Command); ok {
			known[one.Command] = keys
		}
		names, ok := known[one.Command]
		if !ok {
			err := fmt.Errorf("%s: no command %q", Place(file, one.Line), one.Command)
			return exit.Usage(err, meant("", nearest(one.Command, commands)))
		}
		if one.Flag != "" && !slices.Contains(names, one.Flag) {
			err := fmt.Errorf("%s: no %s %q", Place(file, one.Line), settingOf(one.Command), one.Flag)
			return exit.Usage(err, meant("", nearest(one.Flag, names)))
		}
	}
	return nil
}

// settingOf names what the lines of a section set.
func settingOf(section string) string {
	if _, ok := RouteName(section); ok {
		return "key"
	}
	return "flag"
}

// Below returns all commands of a tree except its root.
func Below(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub), Below(sub)...)
	}
	return all
}

// flagsBelow returns the flags of all commands of a tree.
func flagsBelow(root *cobra.Command) []string {
	names := FlagNames(root.PersistentFlags())
	for _, c := range Below(root) {
		names = append(names, FlagNames(c.LocalFlags())...)
	}
	return names
}
