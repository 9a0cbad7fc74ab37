package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// outputFiles and outputFolders are the flags that name what a command writes.
var (
	outputFiles   = []string{"access-log", "html", "out", "record"}
	outputFolders = []string{"save-dir", "write-streams"}
)

// savedForm is that of the names of files in [outputFolders].
var savedForm = regexp.MustCompile(`^(\d{6,}-(request|reply|server-initiated|interim-\d+-\d+)\.xml|` +
	`negotiation-\d+-\d+-(request|reply|interim-\d+-\d+)\.xml|stream\d+-(out|back)-\d+\.bin)(\.withdrawn)?$`)

// inputs are the regular files that a command reads: those of its arguments, its flags, and stdin.
type inputs []namedFile

// namedFile is a file, and what the command line calls it.
type namedFile struct {
	name string
	info fs.FileInfo
}

// inputsOf returns the inputs of a command line.
func inputsOf(env Env, flags *pflag.FlagSet, args []string) (in inputs) {
	for _, name := range args {
		if f, ok := env.In.(*os.File); ok && name == "-" {
			info, err := f.Stat()
			in = in.add("stdin", info, err)
			continue
		}
		info, err := os.Stat(name)
		in = in.add(name, info, err)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		prefix, reads := map[string]string{"FILE": "", "STORE": "bolt:", "WHO": "bearer:"}[placeholder(f)]
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

// spare returns an error if an output, called what on the command line, would overwrite an input.
func (in inputs) spare(what, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to overwrite, or writing reports the error
	}
	for _, one := range in {
		if os.SameFile(one.info, info) {
			return usage(fmt.Errorf("%s would overwrite what it is made from, %s", what, one.name),
				"write to another file")
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
		if !savedForm.MatchString(e.Name()) {
			continue
		}
		if in.spare(what, filepath.Join(folder, e.Name())) != nil {
			return usage(fmt.Errorf("%s could overwrite what it is made from, %s", what,
				filepath.Join(folder, e.Name())), "write to another folder")
		}
	}
	return nil
}

// checkOutputs rejects a command line whose outputs are among its inputs.
func checkOutputs(env Env, c *cobra.Command, args []string) (err error) {
	var in inputs
	for i, name := range slices.Concat(outputFiles, outputFolders) {
		f := c.Flags().Lookup(name)
		if f == nil || f.Value.String() == "" {
			continue
		}
		if in == nil {
			in = inputsOf(env, c.Flags(), args)
		}
		spare := in.spare
		if i >= len(outputFiles) {
			spare = in.spareIn
		}
		err = errors.Join(err, spare("--"+name+" "+f.Value.String(), f.Value.String()))
	}
	return err
}
