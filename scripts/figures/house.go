package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Maximum widths of lines, in columns; a tab has four.
const (
	codeWidth = 120
	textWidth = 100
)

// sizes are what is counted in all packages, without tests.
type sizes struct {
	files, lines  int
	tokens        int                        // without comments
	exported      int                        // top-level names of packages that other modules can import
	types         map[string]map[string]bool // the packages of a type's name
	wide, wideDoc int                        // lines beyond codeWidth; comments beyond textWidth
}

// house prints the sizes of the tree.
func house() error {
	s := &sizes{types: map[string]map[string]bool{}}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		return s.add(path)
	})
	if err != nil {
		return err
	}
	several := 0
	for _, packages := range s.types {
		if len(packages) > 1 {
			several++
		}
	}
	fmt.Printf("files, lines                                  %d, %d\n", s.files, s.lines)
	fmt.Printf("tokens without comments                       %d\n", s.tokens)
	fmt.Printf("type names, those of several packages         %d, %d\n", len(s.types), several)
	fmt.Printf("exported names of public packages             %d\n", s.exported)
	fmt.Printf("lines beyond %d columns, with tests          %d\n", codeWidth, s.wide)
	fmt.Printf("comments beyond %d columns, with tests       %d\n", textWidth, s.wideDoc)
	return nil
}

func (s *sizes) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		width := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		switch {
		case width > codeWidth:
			s.wide++
		case width > textWidth && strings.HasPrefix(strings.TrimSpace(line), "//") &&
			!strings.HasPrefix(strings.TrimSpace(line), "//go:"):
			s.wideDoc++
		}
	}
	if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "scripts"+string(filepath.Separator)) {
		return nil
	}
	s.files++
	s.lines += strings.Count(string(text), "\n")
	fset := token.NewFileSet()
	s.scan(fset.AddFile(path, -1, len(text)), text)
	f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.names(f, filepath.ToSlash(filepath.Dir(path)))
	return nil
}

func (s *sizes) scan(file *token.File, text []byte) {
	var sc scanner.Scanner
	sc.Init(file, text, nil, 0)
	for {
		switch _, tok, literal := sc.Scan(); {
		case tok == token.EOF:
			return
		case tok != token.SEMICOLON || literal != "\n":
			s.tokens++
		}
	}
}

func (s *sizes) names(f *ast.File, dir string) {
	public := f.Name.Name != "main" && !strings.HasPrefix(dir, "internal") && !strings.Contains(dir, "/internal")
	name := func(n *ast.Ident) {
		if public && n.IsExported() {
			s.exported++
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				name(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					name(spec.Name)
					if s.types[spec.Name.Name] == nil {
						s.types[spec.Name.Name] = map[string]bool{}
					}
					s.types[spec.Name.Name][dir] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						name(n)
					}
				}
			}
		}
	}
}
