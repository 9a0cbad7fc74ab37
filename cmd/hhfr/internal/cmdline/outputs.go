package cmdline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// outputFiles and outputFolders are the flags that name what a command writes.
var (
	outputFiles   = []string{"access-log", "html", "out", "record"}
	outputFolders = []string{"save-dir", "write-streams"}
)

// SavedForm is that of the names of files in [outputFolders].
var SavedForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{6,}-(request|reply|server-initiated|interim-\d+-\d+)\.xml|` +
		`negotiation-\d+-\d+-(request|reply|interim-\d+-\d+)\.xml|stream\d+-(out|back)-\d+\.bin)(\.withdrawn)?$`)
})

// inputs are the regular files that a command reads: those of its arguments, its flags, and stdin.
type inputs []namedFile

// namedFile is a file, and what the command line calls it.
type namedFile struct {
	name string
	info fs.FileInfo
}

// InputsOf returns the inputs of a command line.
func InputsOf(g *command.Global, flags *pflag.FlagSet, args []string) (in inputs) {
	for _, name := range args {
		if f, ok := g.In.(*os.File); ok && name == "-" {
			info, err := f.Stat()
			in = in.add("stdin", info, err)
			continue
		}
		info, err := os.Stat(name)
		in = in.add(name, info, err)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		prefix, reads := map[string]string{"FILE": "", "STORE": "bolt:", "WHO": "bearer:"}[Placeholder(f)]
		if !reads || slices.Contains(outputFiles, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if name, ok := strings.CutPrefix(value, prefix); ok {
				info, err := os.Stat(name)
				in = in.add("--"+f.Name+" "+value, info, err)
			}
		}
	})
	return in
}

// add adds a file, unless there is none, or none that writing would destroy.
func (in inputs) add(name string, info fs.FileInfo, err error) inputs {
	if err != nil || !info.Mode().IsRegular() {
		return in
	}
	return append(in, namedFile{name, info})
}

// Spare returns an error if an output, called what on the command line, would overwrite an input.
func (in inputs) Spare(what, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to overwrite, or writing reports the error
	}
	for _, one := range in {
		if os.SameFile(one.info, info) {
			return exit.Usagef("write to another file", "%s would overwrite what it is made from, %s", what, one.name)
		}
	}
	return nil
}

// spareIn is spare for the files that are written to a folder.
func (in inputs) spareIn(what, folder string) error {
	if len(in) == 0 {
		return nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil //nolint:nilerr // it is made, or writing reports the error
	}
	for _, e := range entries {
		if !SavedForm().MatchString(e.Name()) {
			continue
		}
		if in.Spare(what, filepath.Join(folder, e.Name())) != nil {
			return exit.Usagef("write to another folder", "%s could overwrite what it is made from, %s", what,
				filepath.Join(folder, e.Name()))
		}
	}
	return nil
}

// CheckOutputs rejects a command line whose outputs are among its inputs.
func CheckOutputs(g *command.Global, c *cobra.Command, args []string) (err error) {
	var in inputs
	for i, name := range slices.Concat(outputFiles, outputFolders) {
		f := c.Flags().Lookup(name)
		if f == nil || f.Value.String() == "" {
			continue
		}
		if in == nil {
			in = InputsOf(g, c.Flags(), args)
		}
		spare := in.Spare
		if i >= len(outputFiles) {
			spare = in.spareIn
		}
		err = errors.Join(err, spare("--"+name+" "+f.Value.String(), f.Value.String()))
	}
	return err
}
