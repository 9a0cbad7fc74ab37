package layers_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// storey is the files of one package from the bottom to the top. What a file refers to stands in
// files before it, but for so many pairs of files at most.
type storey struct {
	files string
	up    int
}

// rooms are the packages that are large enough to have rooms, with those inside them.
var rooms = map[string]storey{
	"pkg/streamer": {up: 7, files: `
		aliases errors limits coder transport traffic fifo semaphore config message
		outbound ending queue queue_credit queue_take stream acknowledge
		lane inbound call exchange exchanges close
		inbound_read serve arrivals
		body_writer reply calls oneway
		read_buffer handshake reader writer open upgrade`},
	"pkg/streamer/wire": {up: 2, files: `
		stages shape_bases zstd wire decoder_config encoder_config lane_memory
		shapes_in event blocked lanes_in
		decoder decoder_rest decoder_blocked decoder_data decoder_shape decoder_sync decoder_next
		shapes_out outgoing lanes_out
		encoder encoder_sync encoder_shape encoder_data encoder_rest`},
	"pkg/streamer/frame": {files: `
		errors frame close hello ack key data payload shape sync window idle cancel checks numbering parse sniff`},
}

func TestRoomsPointDown(t *testing.T) {
	lookAtEveryFolder(t)
	exported := exportData(t)
	for folder, s := range rooms {
		t.Run(folder, func(t *testing.T) {
			sources := map[string]string{}
			names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
			require.NoError(t, err)
			for _, name := range names {
				if !strings.HasSuffix(name, "_test.go") {
					b, err := os.ReadFile(name)
					require.NoError(t, err)
					sources[strings.TrimSuffix(filepath.Base(name), ".go")] = string(b)
				}
			}
			up, problems := climbs(t, path.Join(module, folder), sources, strings.Fields(s.files), exported)
			assert.Empty(t, problems)
			assert.LessOrEqual(t, len(up), s.up, "references to files above:\n%s", strings.Join(up, "\n"))
		})
	}
}

// The check itself finds what it is made for.
func TestClimbsAreFound(t *testing.T) {
	sources := map[string]string{
		"low":    "package p\ntype item struct{ next *item; n int }\nfunc (i *item) up() { rise(i); rise(i) }",
		"middle": "package p\nvar all []*item\nfunc count() (n int) { for _, i := range all { n += i.n }; return n }",
		"top":    "package p\nfunc rise(i *item) { all = append(all, i); _ = count() }",
	}
	up, problems := climbs(t, "p", sources, []string{"low", "middle", "top"}, nil)
	assert.Equal(t, []string{"low -> top: rise"}, up)
	assert.Empty(t, problems)
	up, problems = climbs(t, "p", sources, []string{"top", "middle", "low"}, nil)
	assert.Equal(t, []string{"middle -> low: item n", "top -> low: item", "top -> middle: all count"}, up)
	assert.Empty(t, problems)
	_, problems = climbs(t, "p", sources, []string{"low", "middle", "gone"}, nil)
	assert.Equal(t, []string{"gone is no file", "top has no row"}, problems)
}

// climbs lists the pairs of files of a package of which the first refers to the second although
// that stands above it, with the names that it refers to. problems are files that the order lacks,
// or that do not exist.
func climbs(
	t *testing.T, importPath string, sources map[string]string, order []string, exported map[string]string,
) (up, problems []string) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range sources {
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
		if !slices.Contains(order, name) {
			problems = append(problems, name+" has no row")
		}
	}
	for _, name := range order {
		if _, ok := sources[name]; !ok {
			problems = append(problems, name+" is no file")
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) }
	check := types.Config{Importer: importer.ForCompiler(set, "gc", open)}
	_, err := check.Check(importPath, set, files, info)
	require.NoError(t, err)

	names := map[[2]string][]string{}
	for ident, object := range info.Uses {
		if object.Pkg() == nil || object.Pkg().Path() != importPath {
			continue
		}
		from, to := set.Position(ident.Pos()).Filename, set.Position(object.Pos()).Filename
		if slices.Index(order, from) < slices.Index(order, to) {
			names[[2]string{from, to}] = append(names[[2]string{from, to}], object.Name())
		}
	}
	for pair, what := range names {
		slices.Sort(what)
		up = append(up, fmt.Sprintf("%s -> %s: %s", pair[0], pair[1], strings.Join(slices.Compact(what), " ")))
	}
	slices.Sort(up)
	slices.Sort(problems)
	return up, problems
}
