package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// expected describes the values of a flag's type; our own types describe themselves.
var expected = map[string]string{
	"bool": "true or false", "duration": "a time such as 500ms, 10s or 1m30s", "float64": "a number",
	"int": "a whole number", "intSlice": "whole numbers, with commas between them",
}

// FlagError describes what is wrong with a flag of the command line.
func FlagError(c *cobra.Command, err error) error {
	hint := c.CommandPath() + " --help lists the flags"
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		err = ValueError("--"+invalid.GetFlag().Name, err)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		hint = cmp.Or(meant("--", nearest(unknown.GetSpecifiedName(), FlagNames(c.Flags()))), hint)
	}
	return exit.Usage(err, hint)
}

// ValueError adds to the error of a bad value what its flag expects. from is the source of the
// value.
func ValueError(from string, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%s: %w", from, err)
	}
	if what, known := expected[invalid.GetFlag().Value.Type()]; known {
		return fmt.Errorf("%s: %q is not %s", from, invalid.GetValue(), what)
	}
	return fmt.Errorf("%s: %w", from, invalid.Unwrap())
}

// FlagNames are the names of all flags.
func FlagNames(f *pflag.FlagSet) (names []string) {
	f.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// nearest returns the names that were probably meant, by cobra's rule for commands.
func nearest(typed string, names []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	found := all.SuggestionsFor(typed)
	slices.Sort(found)
	return slices.Compact(found)
}

// meant asks whether one of the names was meant; empty without names.
func meant(dashes string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "did you mean " + dashes + strings.Join(names, " or "+dashes) + "?"
}

// AskedFormat is the value of --log-format in a wrong command line. The error may come before that
// flag, or be in it; errors are printed in that format, too.
func AskedFormat(c *cobra.Command, args []string) string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.BoolP("help", "h", false, "")
	format, config := f.String("log-format", "", ""), f.String("config", "", "")
	_ = f.Parse(args) // the error is being reported already
	if *format == "" {
		*format = os.Getenv(variable("log-format"))
	}
	if name := cmp.Or(*config, os.Getenv(variable("config"))); *format == "" && name != "" {
		file, _ := readConfig(name)
		*format = file.Of(SectionOf(c), "log-format").Value
	}
	return *format
}

// notStreams are the flags whose files cannot be stdin or stdout, and why.
var notStreams = map[string]string{
	"dir": folderFlag, "save-dir": folderFlag, "write-streams": folderFlag, "store": "a store has a place of its own",
	"record": "stdout has the data of the command; name a file, or a named pipe",
	"html":   "stdout has the data of the command; name a file",
	"schema": inputFlag, "catalog": inputFlag, "reply-schema": inputFlag, "geoip": inputFlag,
	"store-token": inputFlag, "store-cacert": inputFlag, "store-cert": inputFlag, "store-key": inputFlag,
	"cacert": inputFlag, "cert": inputFlag, "key": inputFlag, "listen-cert": inputFlag, "listen-key": inputFlag,
}

const (
	folderFlag = "a folder cannot be stdout"
	inputFlag  = "only a FILE can be stdin"
)

// CheckDashes rejects - where it would name a file of that name.
func CheckDashes(c *cobra.Command) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if why, known := notStreams[f.Name]; known && f.Value.String() == "-" && err == nil {
			err = exit.Usagef("a file of that name is ./-", "--%s -: %s", f.Name, why)
		}
	})
	return err
}
