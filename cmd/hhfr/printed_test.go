package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/resolve"
)

// printedDir is the variable with the folder in which tests keep what commands print as JSON: a
// file for each, whose first line is the command line and whose second one names what it is in the
// schema. After the tests all of it is held against the schema.
const printedDir = "HHFR_TEST_PRINTED"

// printedMost is how much of an output is kept, in bytes.
const printedMost = 4 << 20

// keeping has what a command prints kept, as far as it is JSON.
func keeping(args []string, out, errs io.Writer) (io.Writer, io.Writer) {
	c, _, err := newRoot(&command.Global{}).Find(args)
	if err != nil {
		return out, errs
	}
	format := valueOf(args, "-o", "--output")
	if slices.Contains(args, "--full") {
		format = "json"
	}
	full := slices.Contains(args, "--full")
	if (format == "json" || format == "jsonl") && (full || !printsValues[formName(c, format)]) {
		if valueOf(args, "--access-log") != "-" {
			out = keep(out, args, formName(c, format))
		} else if valueOf(args, "--access-log-format") == "json" {
			out = keep(out, args, formName(c, format), "accesses")
		}
	}
	if valueOf(args, "--log-format") == "json" {
		errs = keep(errs, args, "log")
	}
	return out, errs
}

// keptRun is run as a process of its own.
func keptRun(system resolve.System) int {
	env := command.ProcessEnv("")
	env.System = system
	if !terminal.Is(os.Stderr) { // what is a terminal beside it matters
		env.Out, env.Err = keeping(os.Args[1:], os.Stdout, os.Stderr)
	}
	return cmdline.Run(env, newRoot, os.Args[1:])
}

// valueOf is the value of a flag that has one of some names.
func valueOf(args []string, names ...string) string {
	for i, arg := range args {
		name, value, is := strings.Cut(arg, "=")
		switch {
		case is && slices.Contains(names, name):
			return value
		case slices.Contains(names, arg) && i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// keep returns a writer that passes on what it gets, and keeps it.
func keep(w io.Writer, args []string, names ...string) io.Writer {
	dir := os.Getenv(printedDir)
	if dir == "" { // a test that clears the environment of a process
		return w
	}
	f, err := os.CreateTemp(dir, "")
	if err == nil {
		_, err = fmt.Fprintf(f, "%q\n%s\n", args, strings.Join(names, " "))
	}
	if err != nil {
		panic(err)
	}
	_ = f.Close()
	return &keeper{w: w, file: f.Name()}
}

// keepText keeps what a test has of a server.
func keepText(t testing.TB, text []byte, names ...string) {
	t.Helper()
	_, err := keep(io.Discard, []string{t.Name()}, names...).Write(text)
	require.NoError(t, err)
}

type keeper struct {
	w    io.Writer
	file string
	size int
}

// Write implements [io.Writer]. The file is not held open: nobody closes this.
func (k *keeper) Write(b []byte) (int, error) {
	if k.size += len(b); k.size < printedMost {
		f, err := os.OpenFile(k.file, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.Write(b)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return 0, err
		}
	}
	return k.w.Write(b)
}

// unprinted are the fields that no test here has printed, and why not.
var unprinted = map[string]string{
	"estimate.WayOnLink.too_thin": "takes many calls at once: TestLinksThatAreTooThin of internal/estimate",
	"bench.Model.break_even_all":  "depends on the times that were measured: internal/bench",
	"bench.Model.doubts":          "likewise",
	"bench.Model.oc_ms":           "likewise",
	"demo.SessionRun.break_even":  "likewise: internal/demo",
}

// checkPrinted holds all that was kept against the schema: each whole line fits it, and, if all
// tests ran, there is no field in the schema that nothing printed.
func checkPrinted(dir string) error {
	checker, err := newPrintedChecker()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	var wrong []error
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		head := bufio.NewReader(bytes.NewReader(b))
		args, _ := head.ReadString('\n')
		names, _ := head.ReadString('\n')
		for line := range bytes.Lines(b[len(args)+len(names):]) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break // the command did not come to its end
			}
			if err := checker.check(line, strings.Fields(names)...); err != nil {
				wrong = append(wrong, fmt.Errorf("hhfr %sprints what is not %sof docs/json.md: %w", args, names, err))
				break
			}
		}
	}
	missing := slices.DeleteFunc(checker.missing(), func(name string) bool { return unprinted[name] != "" })
	if allTests() && len(missing) > 0 {
		wrong = append(wrong, fmt.Errorf("docs/json.md has fields that no test has a command print: %s",
			strings.Join(missing, ", ")))
	}
	return errors.Join(wrong...)
}

// allTests reports whether all tests ran, on the system on which none is left out.
func allTests() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return runtime.GOOS == "linux" && cmp.Or(flag.Lookup("test.count").Value.String(), "1") == "1"
}
