package layers_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is a file of the tree as a reader sees it.
type source struct {
	name  string   // its path below the root, with slashes
	lines []string // without line ends
	// prose has, by line, the text of comments in Go files, and the text outside code blocks in
	// Markdown; "" where a line has none.
	prose []string
	// quoted has, by line, the string literals of Go files.
	quoted []string
}

// read returns the Go and Markdown files of the tree, but for generated ones and inputs of tests.
func read(t *testing.T) (list []source) {
	t.Helper()
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		if d.IsDir() {
			if file != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "dist"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), "\n// Code generated ") {
			return err
		}
		list = append(list, parse(name, string(text)))
		return nil
	}))
	require.Greater(t, len(list), 100, "the files of the tree were not found")
	return list
}

func parse(name, text string) source {
	s := source{name: name, lines: strings.Split(text, "\n")}
	s.prose, s.quoted = make([]string, len(s.lines)), make([]string, len(s.lines))
	if strings.HasSuffix(name, ".md") {
		s.markdown()
	} else {
		s.golang(text)
	}
	return s
}

func (s *source) markdown() {
	inCode := false
	for i, l := range s.lines {
		switch {
		case strings.HasPrefix(strings.TrimSpace(l), "```"):
			inCode = !inCode
		case !inCode && !strings.HasPrefix(l, "    "):
			s.prose[i] = unseen.ReplaceAllString(l, "")
		}
	}
}

func (s *source) golang(text string) {
	files := token.NewFileSet()
	file := files.AddFile(s.name, -1, len(text))
	var scan scanner.Scanner
	scan.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, literal := scan.Scan()
		into := s.quoted
		switch tok {
		case token.EOF:
			return
		case token.COMMENT:
			into = s.prose
		case token.STRING:
		default:
			continue
		}
		first := file.Line(pos) - 1
		for i, l := range strings.Split(strings.TrimSuffix(literal, "\n"), "\n") {
			into[first+i] += l
		}
	}
}

// report fails for each finding.
func report(t *testing.T, found map[string][]string) {
	t.Helper()
	for _, list := range found {
		for _, what := range list {
			t.Error(what)
		}
	}
}
