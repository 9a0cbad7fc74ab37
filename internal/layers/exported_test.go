package layers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handles are types of internal packages that other modules get from a function and give to another
// one, without a look inside: by their names outside, the functions that return them.
var handles = map[string]string{
	"pkg/streamer.Coder":  "pkg/streamer/coding.Shapes.Binary",
	"pkg/schema.Shape":    "pkg/schema.Schema.Shape",
	"pkg/schema.Contents": "pkg/schema.Schema.Contents",
}

// Nobody outside the module can name a type of its internal packages: none is in what other
// packages export, unless one of those has a name of its own for it (an alias). What such a name
// stands for is looked into in turn, unless it is a handle.
func TestNoInternalTypesAreExported(t *testing.T) {
	lookAtEveryFolder(t)
	files := exportData(t)
	open := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	imported := importer.ForCompiler(token.NewFileSet(), "gc", open)
	public := map[string]*types.Package{}
	named := map[*types.TypeName]bool{}
	for path := range files {
		folder, own := ours(path)
		if !own || within(folder, []string{"internal", "cmd", "testdata"}) || strings.Contains(folder, "/internal") {
			continue
		}
		p, err := imported.Import(path)
		require.NoError(t, err, path)
		public[path] = p
		addAliases(p, folder, named)
	}
	for handle, by := range handles {
		at := strings.LastIndexByte(handle, '.')
		of := public[module+"/"+handle[:at]]
		require.NotNil(t, of, handle)
		require.NotNil(t, of.Scope().Lookup(handle[at+1:]), "%s is nothing", handle)
		want := of.Scope().Lookup(handle[at+1:]).Type()
		assert.True(t, returns(public, by, want), "%s does not return a %s", by, handle)
	}
	for path, p := range public {
		for _, what := range exposed(p, named) {
			t.Errorf("%s: %s", path, what)
		}
	}
	assert.Greater(t, len(public), 10)
}

// returns reports whether an exported method, PACKAGE.TYPE.METHOD, returns a type or a pointer to
// it.
func returns(public map[string]*types.Package, method string, want types.Type) bool {
	name := strings.LastIndexByte(method, '.')
	of := strings.LastIndexByte(method[:name], '.')
	p := public[module+"/"+method[:of]]
	if p == nil || p.Scope().Lookup(method[of+1:name]) == nil {
		return false
	}
	found, _, _ := types.LookupFieldOrMethod(p.Scope().Lookup(method[of+1:name]).Type(), true, p, method[name+1:])
	f, ok := found.(*types.Func)
	if !ok || !f.Exported() {
		return false
	}
	for result := range f.Signature().Results().Variables() {
		if got := result.Type(); types.Identical(got, want) || types.Identical(got, types.NewPointer(want)) {
			return true
		}
	}
	return false
}

// addAliases finds the types of other packages that a package has names for, and whether they are
// looked into.
func addAliases(p *types.Package, folder string, to map[*types.TypeName]bool) {
	for _, name := range p.Scope().Names() {
		alias, ok := p.Scope().Lookup(name).Type().(*types.Alias)
		if !ok || !p.Scope().Lookup(name).Exported() {
			continue
		}
		if original, ok := types.Unalias(alias).(*types.Named); ok {
			_, handle := handles[folder+"."+name]
			to[original.Obj()] = !handle
		}
	}
}

// exportData finds what the compiler says of each package of the module and of what they import.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	files := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		if p.Export != "" {
			files[p.ImportPath] = p.Export
		}
	}
}

// exposed lists the types of internal packages that a package shows.
func exposed(p *types.Package, named map[*types.TypeName]bool) []string {
	w := &walk{pkg: p, aliased: named, seen: map[types.Type]bool{}}
	for _, name := range p.Scope().Names() {
		if obj := p.Scope().Lookup(name); obj.Exported() {
			w.object(name, obj)
		}
	}
	return w.found
}

// walk goes over what others see of a package.
type walk struct {
	pkg *types.Package
	// aliased are types of internal packages that have names in others; true: what they show is
	// looked into.
	aliased map[*types.TypeName]bool
	seen    map[types.Type]bool
	found   []string
}

func (w *walk) object(at string, obj types.Object) {
	named, ok := obj.Type().(*types.Named)
	if _, isType := obj.(*types.TypeName); !ok || !isType {
		w.shown(at, obj.Type())
		return
	}
	w.declared(at, named)
}

// declared looks at the fields and methods of a type of this package.
func (w *walk) declared(at string, named *types.Named) {
	if w.seen[named] {
		return
	}
	w.seen[named] = true
	w.shown(at, named.Underlying())
	for m := range named.Methods() {
		if m.Exported() {
			w.shown(at+"."+m.Name(), m.Type())
		}
	}
}

// shown looks at a type that stands in something exported.
func (w *walk) shown(at string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		w.shown(at, types.Unalias(t))
	case *types.Named:
		w.named(at, t)
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.shown(at+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.shown(at+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range list.Variables() {
				w.shown(at, v.Type())
			}
		}
	case *types.Map:
		w.shown(at, t.Key())
		w.shown(at, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.shown(at, t.Elem())
	}
}

// named looks at a type that has a name: it must not be one of an internal package. One of this
// package without an exported name shows what it has.
func (w *walk) named(at string, t *types.Named) {
	for a := range t.TypeArgs().Types() {
		w.shown(at, a)
	}
	obj := t.Obj()
	looked, aliased := w.aliased[obj]
	switch {
	case obj.Pkg() == nil:
	case aliased:
		if looked {
			w.declared(at, t)
		}
	case strings.Contains(obj.Pkg().Path()+"/", "/internal/"):
		w.found = append(w.found, at+" has the type "+obj.Pkg().Name()+"."+obj.Name()+" of an internal package")
	case obj.Pkg() == w.pkg && !obj.Exported():
		w.declared(at, t)
	}
}
