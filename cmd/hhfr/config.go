package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are the values of flags that a file gives: for all commands, and by command.
type settings map[string]map[string]string

// readConfig reads a --config file: lines `flag = value`, below a line `[command]` for that command alone; # begins a comment.
func readConfig(name string) (settings, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }()
	all := settings{"": {}}
	section := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if inner, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(inner, "]") {
			section = strings.TrimSuffix(inner, "]")
			if all[section] == nil {
				all[section] = map[string]string{}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, usage(fmt.Errorf("--config %s, line %d: %q is not of the form flag = value", name, n, line), "")
		}
		all[section][strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"`)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return all, nil
}

// variable is the environment's name for a flag.
func variable(flag string) string {
	return "HHFR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fillFlags sets the flags that the command line does not: from HHFR_* variables, else from the --config file.
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
		for section, values := range file {
			if err := knownFlags(c.Root(), section, values); err != nil {
				return usage(fmt.Errorf("--config %s: %w", name, err), "")
			}
		}
	}
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || failed != nil {
			return
		}
		value, from := os.Getenv(variable(f.Name)), variable(f.Name)
		if value == "" {
			if value = file[c.Name()][f.Name]; value == "" {
				value = file[""][f.Name]
			}
			from = "--config: " + f.Name
		}
		if value == "" {
			return
		}
		if err := c.Flags().Set(f.Name, value); err != nil {
			failed = usage(fmt.Errorf("%s: %w", from, err), "")
		}
	})
	return failed
}

// knownFlags refuses names that no command has, which are typing errors.
func knownFlags(root *cobra.Command, section string, values map[string]string) error {
	commands := root.Commands()
	if section != "" {
		c, _, err := root.Find([]string{section})
		if err != nil || c == root {
			return errors.New("no command " + section)
		}
		commands = []*cobra.Command{c}
	}
	for name := range values {
		known := root.PersistentFlags().Lookup(name) != nil
		for _, c := range commands {
			known = known || c.Flags().Lookup(name) != nil
		}
		if !known {
			return fmt.Errorf("no flag %q", name)
		}
	}
	return nil
}
