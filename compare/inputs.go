package main

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/hhfr/hhfr/pkg/workload"
)

// seed is that of generated messages.
const seed = 1

// folders are the workloads, in the order of the report. ideal is the size of a hand-written binary
// form of exactly this data, with a context store and no compression; protobuf is the same as
// Protocol Buffers, 0 if not known. Both are for orientation, in bytes.
var folders = []struct {
	name            string
	messages        int
	generate        func() iter.Seq[[]byte]
	ideal, protobuf float64
}{
	{"w1-4strings", 100, func() iter.Seq[[]byte] { return workload.Strings(seed, 4) }, 101, 104},
	{"w1-8strings", 100, func() iter.Seq[[]byte] { return workload.Strings(seed, 8) }, 201, 208},
	{"w2-10floats", 100, func() iter.Seq[[]byte] { return workload.Floats(seed, 10) }, 41, 42},
	{"w2-100floats", 100, func() iter.Seq[[]byte] { return workload.Floats(seed, 100) }, 401, 403},
	{"w2-1000floats", 30, func() iter.Seq[[]byte] { return workload.Floats(seed, 1000) }, 4002, 4003},
	{"w3-20records", 100, func() iter.Seq[[]byte] { return workload.Records(seed, 20) }, 441, 0},
	{"w3-100records", 100, func() iter.Seq[[]byte] { return workload.Records(seed, 100) }, 2201, 2608},
	{"w3-500records", 30, func() iter.Seq[[]byte] { return workload.Records(seed, 500) }, 11002, 0},
	{"w5-headers", 100, func() iter.Seq[[]byte] { return workload.Headers(seed) }, 88, 404},
}

// inputs are the messages that are measured.
type inputs struct {
	source    string // the report's text about their origin
	workloads map[string][][]byte
	corpus    string // folder of real messages, empty if there is none
}

// findInputs loads the workloads of a folder; without one it generates them. A named folder must
// exist.
func findInputs(shared string) (*inputs, error) {
	in := &inputs{workloads: map[string][][]byte{}}
	shared = findShared(shared)
	if shared == "" {
		in.source = "generated messages"
		for _, f := range folders {
			in.workloads[f.name] = take(f.generate(), f.messages)
		}
		return in, nil
	}
	in.source = "messages of the workloads folder"
	for _, f := range folders {
		messages, err := workload.Load(filepath.Join(shared, "workloads", f.name))
		if err != nil {
			return nil, err
		}
		in.workloads[f.name] = messages
	}
	if dir := filepath.Join(shared, "corpus", "messages"); isDir(dir) {
		in.corpus = dir
	}
	return in, nil
}

// findShared looks for the folder beside the checkout, where none is named; "": there is none.
func findShared(named string) string {
	if named != "" {
		return named
	}
	// `go -C compare run .`, or a binary run in the checkout
	for _, dir := range []string{"../../shared", "../shared"} {
		if _, err := os.Stat(filepath.Join(dir, "workloads")); err == nil {
			return dir
		}
	}
	return ""
}

// findMessages loads those of one workload, as [findInputs] does.
func findMessages(shared, name string) ([][]byte, error) {
	if shared = findShared(shared); shared != "" {
		return workload.Load(filepath.Join(shared, "workloads", name))
	}
	for _, f := range folders {
		if f.name == name {
			return take(f.generate(), f.messages), nil
		}
	}
	return nil, fmt.Errorf("no workload %q", name)
}

func take(messages iter.Seq[[]byte], n int) (list [][]byte) {
	for m := range messages {
		if list = append(list, m); len(list) == n {
			break
		}
	}
	return list
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// corpusMessages reads all messages of the corpus, or those with an extension, in the order of
// their paths.
func corpusMessages(dir string, only ...string) (messages [][]byte, err error) {
	var paths []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && d.Type().IsRegular() && ext != ".wsdl" && ext != ".xsd" &&
			(len(only) == 0 || slices.Contains(only, ext)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no messages below %q", dir)
	}
	slices.Sort(paths)
	for _, path := range paths {
		m, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
