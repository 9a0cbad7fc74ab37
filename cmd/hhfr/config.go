package main

import (
	"bufio"
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
	var file settings
	name := c.Flags().Lookup("config").Value.String()
	if name == "" {
		name = os.Getenv(variable("config"))
	}
	if name != "" {
		var err error
		if file, err = readConfig(name); err != nil {
			return err
		}
		if err := file.check(c.Root(), name); err != nil {
			return err
		}
	}
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || failed != nil {
			return
		}
		value, from := os.Getenv(variable(f.Name)), variable(f.Name)
		if value == "" {
			s := file.of(sectionOf(c), f.Name)
			value, from = s.value, place(name, s.line)+", "+f.Name
		}
		if value == "" {
			return
		}
		if err := c.Flags().Set(f.Name, value); err != nil {
			failed = usage(valueError(from, err), "")
		}
	})
	return failed
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
		names, ok := known[one.command]
		if !ok {
			err := fmt.Errorf("%s: no command %q", place(file, one.line), one.command)
			return usage(err, meant("", nearest(one.command, commands)))
		}
		if one.flag != "" && !slices.Contains(names, one.flag) {
			err := fmt.Errorf("%s: no flag %q", place(file, one.line), one.flag)
			return usage(err, meant("", nearest(one.flag, names)))
		}
	}
	return nil
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
