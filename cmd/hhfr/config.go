package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are the lines of a --config file, in order.
type settings []setting

// setting is the value of a flag, for one command or, without a command name, for all. Without a
// flag it is the line that names the command.
type setting struct {
	line                 int
	command, flag, value string
}

// of returns a command's setting for a flag: its own, otherwise that of all commands, otherwise the
// zero value. The last line counts.
func (s settings) of(command, flag string) (found setting) {
	for _, one := range s {
		if one.flag == flag && (one.command == command || one.command == "" && found.command == "") {
			found = one
		}
	}
	return found
}

// readConfig reads a --config file of lines `flag = value`. Lines after `[command]` are for that
// command alone; # begins a comment.
func readConfig(name string) (all settings, err error) {
	if name == "-" {
		return nil, usage(errors.New("--config -: "+inputFlag), "")
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
			all = append(all, setting{line: n, command: command})
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, usage(fmt.Errorf("%s: %q is not of the form flag = value", place(name, n), line), "")
		}
		all = append(all, setting{n, command, strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"`)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return all, nil
}

// place names a line of a --config file.
func place(name string, line int) string { return fmt.Sprintf("--config %s, line %d", name, line) }

// sectionOf is the name of a command in a --config file.
func sectionOf(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "HHFR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fillFlags sets the flags that the command line does not set: from HHFR_* variables, otherwise
// from the --config file.
func fillFlags(c *cobra.Command) error {
	name := configName(c)
	var file settings
	if name != "" {
		var err error
		if file, err = openConfig(c.Root(), name); err != nil {
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
				failed = usage(valueError(variable(f.Name), err), "")
			}
			return
		}
		failed = file.fill(c.Flags(), sectionOf(c), f, name)
	})
	return failed
}

// configName is the name of the --config file of a command line; empty without one.
func configName(c *cobra.Command) string {
	return cmp.Or(c.Flags().Lookup("config").Value.String(), os.Getenv(variable("config")))
}

// openConfig reads and checks a --config file.
func openConfig(root *cobra.Command, name string) (settings, error) {
	file, err := readConfig(name)
	if err == nil {
		err = file.check(root, name)
	}
	return file, err
}

// inFile marks the flags that are set by the --config file.
const inFile = "config"

// fill sets a flag of a command as the file does, if it does.
func (s settings) fill(flags *pflag.FlagSet, command string, f *pflag.Flag, name string) error {
	one := s.of(command, f.Name)
	if one.value == "" {
		return nil
	}
	if err := flags.Set(f.Name, one.value); err != nil {
		return usage(valueError(place(name, one.line)+", "+f.Name, err), "")
	}
	return flags.SetAnnotation(f.Name, inFile, []string{})
}

// check rejects names that no command has: they are typing errors.
func (s settings) check(root *cobra.Command, file string) error {
	known := map[string][]string{"": flagsBelow(root)}
	var commands []string
	for _, c := range below(root) {
		known[sectionOf(c)] = slices.Concat(flagNames(root.PersistentFlags()), flagNames(c.LocalFlags()))
		commands = append(commands, sectionOf(c))
	}
	for _, one := range s {
		if _, ok := routeName(one.command); ok {
			known[one.command] = routeKeys()
		}
		names, ok := known[one.command]
		if !ok {
			err := fmt.Errorf("%s: no command %q", place(file, one.line), one.command)
			return usage(err, meant("", nearest(one.command, commands)))
		}
		if one.flag != "" && !slices.Contains(names, one.flag) {
			err := fmt.Errorf("%s: no %s %q", place(file, one.line), settingOf(one.command), one.flag)
			return usage(err, meant("", nearest(one.flag, names)))
		}
	}
	return nil
}

// settingOf names what the lines of a section set.
func settingOf(section string) string {
	if _, ok := routeName(section); ok {
		return "key"
	}
	return "flag"
}

// below returns all commands of a tree except its root.
func below(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub), below(sub)...)
	}
	return all
}

// flagsBelow returns the flags of all commands of a tree.
func flagsBelow(root *cobra.Command) []string {
	names := flagNames(root.PersistentFlags())
	for _, c := range below(root) {
		names = append(names, flagNames(c.LocalFlags())...)
	}
	return names
}
