package layers_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sized is a package with the texts of its files, by name without .go, without tests.
type sized struct {
	folder  string
	lines   int
	sources map[string]string
}

// largePackages are those of the module above largePackage lines, in the order of their names.
func largePackages(t *testing.T) (large []sized) {
	t.Helper()
	for _, p := range packages(t, "linux") {
		folder, _ := ours(p.ImportPath)
		s := sized{folder: folder, sources: map[string]string{}}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(folder), name))
			require.NoError(t, err)
			s.sources[strings.TrimSuffix(name, ".go")] = string(text)
			s.lines += strings.Count(string(text), "\n")
		}
		if s.lines > largePackage {
			large = append(large, s)
		}
	}
	require.NotEmpty(t, large, "no package of more than %d lines was found", largePackage)
	return large
}

// ofHouse counts what is in all packages, those of compare too, without tests and scripts.
func (f figures) ofHouse(t *testing.T) {
	t.Helper()
	root := filepath.Join("..", "..")
	types := map[string]map[string]bool{} // the packages of a type's name
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		if d.IsDir() {
			hidden := file != root && strings.HasPrefix(d.Name(), ".")
			if hidden || slices.Contains([]string{"bin", "dist", "scripts", "testdata/outside"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f["tokens"] += tokens(text)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f.names(parsed, path.Dir(name), types)
		return nil
	}))
	for _, packages := range types {
		if len(packages) > 1 {
			f["type names of several packages"]++
		}
	}
}

// tokens counts those of a file, without comments.
func tokens(text []byte) (n int) {
	var sc scanner.Scanner
	sc.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, 0)
	for {
		switch _, tok, literal := sc.Scan(); {
		case tok == token.EOF:
			return n
		case tok != token.SEMICOLON || literal != "\n":
			n++
		}
	}
}

// names counts the names that a file exports to other modules, and notes its types.
func (f figures) names(file *ast.File, folder string, types map[string]map[string]bool) {
	public := file.Name.Name != "main" && !strings.Contains("/"+folder+"/", "/internal/")
	count := func(n *ast.Ident) {
		if public && n.IsExported() {
			f["exported names"]++
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
					if types[spec.Name.Name] == nil {
						types[spec.Name.Name] = map[string]bool{}
					}
					types[spec.Name.Name][folder] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						count(n)
					}
				}
			}
		}
	}
}

// structure is a struct with its methods.
type structure struct{ fields, methods int }

// largestType is the struct of a package that has most fields and methods.
func largestType(t *testing.T, sources map[string]string) structure {
	t.Helper()
	all := map[string]*structure{}
	of := func(name string) *structure {
		if all[name] == nil {
			all[name] = &structure{}
		}
		return all[name]
	}
	for name, text := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					of(n.Name.Name).fields = s.Fields.NumFields()
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					of(receiver(n.Recv.List[0].Type)).methods++
				}
			}
			return true
		})
	}
	var largest structure
	for _, s := range all {
		all, most := s.fields+s.methods, largest.fields+largest.methods
		if cmp.Or(cmp.Compare(all, most), cmp.Compare(s.fields, largest.fields)) > 0 {
			largest = *s
		}
	}
	return largest
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func TestLargestType(t *testing.T) {
	sources := map[string]string{
		"a": "package p\ntype small struct{ a, b int }\ntype large[T any] struct{ a T }\nfunc (l *large[T]) one() {}",
		"b": "package p\nfunc (l large[T]) two() {}\nfunc (s small) one() {}",
	}
	assert.Equal(t, structure{fields: 2, methods: 1}, largestType(t, sources), "of two that are as large, more fields")
	sources["c"] = "package p\nfunc (l large[T]) three() {}"
	assert.Equal(t, structure{fields: 1, methods: 3}, largestType(t, sources))
}
