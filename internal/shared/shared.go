// Package shared finds the optional folder of real inputs (corpus, workloads, verified vectors)
// that tests use if it is there, and has helpers for tests of several packages.
package shared

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Dir returns the path of a folder below the shared one: the one HHFR_SHARED names, otherwise
// `shared` beside the checkout. If there is none the test is skipped; it fails if HHFR_CI is 1.
func Dir(tb testing.TB, below ...string) string {
	tb.Helper()
	dir := filepath.Join(append([]string{top(tb)}, below...)...)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("HHFR_CI") == "1" {
			tb.Fatalf("no shared inputs: %v (HHFR_CI=1 makes this an error)", err)
		}
		tb.Skipf("no shared inputs: %v (set HHFR_SHARED to the folder that has them)", err)
	}
	return dir
}

func top(tb testing.TB) string {
	if dir := os.Getenv("HHFR_SHARED"); dir != "" {
		return dir
	}
	return filepath.Join(root(tb), "..", "shared")
}

// Has reports whether the folder is there, for seeds of fuzz targets that can run without it.
func Has(tb testing.TB) bool {
	tb.Helper()
	_, err := os.Stat(top(tb))
	return err == nil
}

// root is the checkout: the folder with go.mod above the test's.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			tb.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// Testdata returns the path of a folder below the checkout's testdata.
func Testdata(tb testing.TB, below ...string) string {
	tb.Helper()
	return filepath.Join(append([]string{root(tb), "testdata"}, below...)...)
}

// Some is how often a test does what takes long: n times, and a fifth of that with -short, or under
// the race detector, which is ten times as slow, and looks at what goroutines share and not at how
// many inputs are right.
func Some(n int) int {
	if Raced || testing.Short() {
		return (n + 4) / 5
	}
	return n
}

// Messages returns the paths of all messages of the corpus: every file except schemas and service
// descriptions, sorted.
func Messages(tb testing.TB) []string {
	tb.Helper()
	return Files(tb, Dir(tb, "corpus", "messages"), func(path string) bool {
		return !strings.HasSuffix(path, ".wsdl") && !strings.HasSuffix(path, ".xsd")
	})
}

// SomeMessages are [Some] of Messages, evenly spread.
func SomeMessages(tb testing.TB) []string {
	tb.Helper()
	all := Messages(tb)
	some := make([]string, Some(len(all)))
	for i := range some {
		some[i] = all[i*len(all)/len(some)]
	}
	return some
}

// Envelopes returns the messages of testdata/soap, with corpus also those of the corpus if it is
// there.
func Envelopes(tb testing.TB, corpus bool) (list [][]byte) {
	tb.Helper()
	paths := Files(tb, Testdata(tb, "soap"), func(path string) bool { return filepath.Ext(path) == ".xml" })
	if corpus && Has(tb) {
		paths = append(paths, Messages(tb)...)
	}
	for _, path := range paths {
		list = append(list, Read(tb, path))
	}
	return list
}

// Files returns the paths of the files below dir that keep accepts (nil: all), sorted. Finding none
// fails the test.
func Files(tb testing.TB, dir string, keep func(path string) bool) (paths []string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (keep == nil || keep(path)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(paths) == 0 {
		tb.Fatalf("no files below %s", dir)
	}
	slices.Sort(paths)
	return paths
}

// Read returns a file's bytes.
func Read(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
