// Command figures prints the measures of this tree; scripts/figures.sh runs it.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	largest, err := largestType("pkg/streamer")
	if err != nil {
		return err
	}
	checks, err := count(".", func(line string) bool {
		return strings.Contains(line, "unordered ==") || strings.Contains(line, "packer !=")
	})
	if err != nil {
		return err
	}
	handOvers, err := handOversPerCall()
	if err != nil {
		return err
	}
	fmt.Printf("largest type of pkg/streamer                  %s\n", largest)
	fmt.Printf("checks for `unordered ==` and `packer !=`      %d\n", checks)
	for _, g := range []struct {
		what  string
		files []string
	}{
		{"lines of the machine that receives", []string{"internal/wire/decoder*.go", "internal/wire/*_in.go",
			"internal/wire/event.go", "internal/wire/blocked.go", "pkg/streamer/reader.go"}},
		{"lines that drive it in internal/capture", []string{"internal/capture/direction*.go",
			"internal/capture/side*.go"}},
		{"lines of internal/proxy", []string{"internal/proxy/*.go"}},
	} {
		n := 0
		for _, pattern := range g.files {
			k, err := count(pattern, func(line string) bool { return strings.TrimSpace(line) != "" })
			if err != nil {
				return err
			}
			n += k
		}
		fmt.Printf("%-45s  %d\n", g.what, n)
	}
	fmt.Printf("hand-overs of a call through a pair           %.1f\n", handOvers)
	return house()
}

// count counts the non-blank lines of files without tests: those of a pattern, or all below a
// folder.
func count(pattern string, counts func(line string) bool) (n int, err error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return 0, err
	}
	if pattern == "." {
		files = nil
		err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasPrefix(path, "scripts") {
				files = append(files, path)
			}
			return err
		})
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || err != nil {
			continue
		}
		var octets []byte
		octets, err = os.ReadFile(file)
		for line := range strings.Lines(string(octets)) {
			if counts(line) {
				n++
			}
		}
	}
	return n, err
}

// largestType is the struct of a package that has most fields and methods.
func largestType(dir string) (string, error) {
	fields, methods := map[string]int{}, map[string]int{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return "", err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					fields[n.Name.Name] = s.Fields.NumFields()
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[receiver(n.Recv.List[0].Type)]++
				}
			}
			return true
		})
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(fields[b]+methods[b], fields[a]+methods[a]), strings.Compare(a, b))
	})
	return fmt.Sprintf("%s, %d fields, %d methods", names[0], fields[names[0]], methods[names[0]]), nil
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// handOversPerCall counts, in an execution trace of calls through a pair of proxies, how often a
// goroutine makes another one ready: wake-ups by the network do not count.
func handOversPerCall() (float64, error) {
	const calls = 2000
	dir, err := os.MkdirTemp("", "figures")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	trace := filepath.Join(dir, "trace")
	bench := exec.Command("go", "test", "./internal/proxy", "-run", "^$", "-bench", "^BenchmarkCall$",
		"-benchtime", fmt.Sprintf("%dx", calls), "-trace", trace, "-o", filepath.Join(dir, "test"))
	if out, err := bench.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	parsed := exec.Command("go", "tool", "trace", "-d=parsed", trace)
	out, err := parsed.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := parsed.Start(); err != nil {
		return 0, err
	}
	n := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Bytes()
		ready := bytes.Contains(line, []byte(" Waiting->Runnable")) ||
			bytes.Contains(line, []byte(" NotExist->Runnable"))
		if ready && !bytes.Contains(line, []byte(" G=-1 ")) {
			n++
		}
	}
	return float64(n) / calls, cmp.Or(lines.Err(), parsed.Wait())
}
