package layers_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// room is a package of a house, with its files from the lowest up.
type room struct{ name, files string }

// inside holds houses that are too large for one glance: their rooms from the lowest up. A room
// imports none above it, and a file refers to none above it in its room.
var inside = map[string][]room{
	"pkg/shape": {
		{"pkg/shape", "limits error node canonical serial shape builder"},
		{"pkg/shape/internal/lexical", "limits prefix number float uuid datetime lines utf16"},
		{"pkg/shape/learn", "limits draft types forms rows choice attributes merge recurring learner " +
			"document copy build family head"},
		{"pkg/shape/internal/code", "ops steps code"},
		{"pkg/shape/internal/items", "limits reader"},
		{"pkg/shape/program", "limits program scan segment segment_values segment_pieces column splitter " +
			"split_value split_column split_quick split joiner join_value join_column join"},
		{"pkg/shape/columns", "limits bits counted text_words text_memory memory memory_fold walk column " +
			"gatherer gather_rows gather dictionary packer pack_text pack_column pack_quick pack " +
			"unpacker unpack_text unpack_column unpack_rows unpack_quick unpack"},
		{"pkg/shape/transit", "fold unfold transit"},
	},
}

// mostUp is how many references between two files may run up in a house.
const mostUp = 1

// Files of a large house refer to those below them.
func TestFilesPointDown(t *testing.T) {
	lookAtEveryFolder(t)
	exports := exportData(t)
	for house, rooms := range inside {
		var up []string
		all := 0
		for _, r := range rooms {
			arrows := arrowsBetweenFiles(t, r, exports)
			all += len(arrows)
			order := strings.Fields(r.files)
			for _, a := range arrows {
				if slices.Index(order, a[0]) < slices.Index(order, a[1]) {
					up = append(up, path.Join(r.name, a[0])+" refers to "+a[1])
				}
			}
		}
		t.Logf("%s: %d of %d references between files run up", house, len(up), all)
		assert.LessOrEqual(t, len(up), mostUp, "%s:\n%s", house, strings.Join(up, "\n"))
	}
}

// arrowsBetweenFiles gives each two files of a package of which the first refers to something that
// the second declares: a name, a method or a field.
func arrowsBetweenFiles(t *testing.T, r room, exports map[string]string) [][2]string {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join("..", "..", r.name, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	var names []string
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, p, nil, 0)
		require.NoError(t, err)
		files, names = append(files, f), append(names, strings.TrimSuffix(filepath.Base(p), ".go"))
	}
	require.ElementsMatch(t, strings.Fields(r.files), names, "%s: the table, and the files there are", r.name)
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", open)}
	pkg, err := conf.Check(module+"/"+r.name, fset, files, &info)
	require.NoError(t, err)
	file := func(p token.Pos) string { return strings.TrimSuffix(filepath.Base(fset.Position(p).Filename), ".go") }
	found := map[[2]string]bool{}
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg {
			continue
		}
		if from, to := file(id.Pos()), file(obj.Pos()); from != to {
			found[[2]string{from, to}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}

// above reports whether a package stands above another in the house of both.
func above(upper, lower string) bool {
	rooms := inside[house(lower)]
	at := func(name string) int { return slices.IndexFunc(rooms, func(r room) bool { return r.name == name }) }
	return at(lower) >= 0 && at(upper) > at(lower)
}
