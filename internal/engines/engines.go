// Package engines opens a context store by its name on a command line.
package engines

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

// Options for any engine. The zero value works.
type Options struct {
	// ReadOnly opens what must exist already, and writes nothing.
	ReadOnly bool
	// MaxBytes is the space the store may take, in bytes; 0 means [FileBytes] for a file or folder,
	// else [ctxstore.DefaultMaxBytes]. A bucket of NATS that exists keeps its own, and a context
	// service has one of its own: the option is [ctxstore.Invalid] there.
	MaxBytes int64
	// Clock is the clock for times to live; nil means the machine's.
	Clock clock.Clock
	// Token is the token for a context service or for NATS servers, TLS what is used for those that
	// speak it. The zero values: none, and the system's roots.
	Token string
	TLS   *tls.Config
}

// FileBytes is the default space of a store in a file or folder, in bytes: that of the longest
// message under a guarantee, its reply, and as much again.
const FileBytes = 4 << 30

type engine struct {
	prefix string
	form   string // for help texts; empty: that of the line above
	open   func(ctx context.Context, rest string, o Options) (ctxstore.Store, error)
	paths  func(rest string) []string // what others must not write: the store, and the folder around it; nil: nothing
}

// table has one line per engine. A name without a known prefix is a folder, which comes last.
var table = []engine{
	{"mem:", "mem:", openMemory, nil},
	{"bolt:", "bolt:FILE", openBolt, func(file string) []string { return []string{file, filepath.Dir(file)} }},
	{"http://", "http[s]://HOST:PORT/PATH", openService("http://"), nil},
	{"https://", "", openService("https://"), nil},
	{"nats://", nats.Form, openNATS("nats://"), nil},
	{"nats+tls://", "", openNATS("nats+tls://"), nil},
	{"", "DIR", openDirectory, func(dir string) []string { return []string{dir} }},
}

// Forms lists the forms of a store's name, for help texts.
func Forms() []string {
	var forms []string
	for _, e := range table {
		if e.form != "" {
			forms = append(forms, e.form)
		}
	}
	return forms
}

// Open opens the store that spec names: "mem:", "bolt:" and the path of a file, the URL of a
// context service or of a bucket of NATS, or the path of a folder. A spec that looks like the name
// of an engine hhfr does not have is [ctxstore.Invalid], not a folder.
func Open(ctx context.Context, spec string, o Options) (ctxstore.Store, error) {
	if err := checkEngine(spec); err != nil {
		return nil, err
	}
	e, rest := engineOf(spec)
	return e.open(ctx, rest, o)
}

// checkEngine rejects what looks like the name of an engine hhfr does not have.
func checkEngine(spec string) error {
	scheme, _, ok := strings.Cut(spec, ":")
	if e, _ := engineOf(spec); e.prefix != "" || !ok || !looksLikeScheme(scheme) {
		return nil
	}
	return &ctxstore.Error{
		Code: ctxstore.Invalid,
		Err:  fmt.Errorf("no engine for %q", spec),
		Hint: "known forms: " + strings.Join(Forms(),
			", ") + "; a folder with a colon in its name is written ./" + spec,
	}
}

// engineOf returns the engine that spec names, and the rest of the name.
func engineOf(spec string) (e engine, rest string) {
	e = table[slices.IndexFunc(table, func(e engine) bool { return strings.HasPrefix(spec, e.prefix) })]
	return e, strings.TrimPrefix(spec, e.prefix)
}

// Exposed returns the file or folder of a store that is there, if its mode lets other users of this
// machine write it, and so replace what is stored; "" if it does not. In a folder with the sticky
// bit, as /tmp, they cannot replace a file.
func Exposed(spec string) (path string, mode fs.FileMode) {
	e, rest := engineOf(spec)
	if e.paths == nil || runtime.GOOS == "windows" { // where modes say nothing
		return "", 0
	}
	for i, path := range e.paths(rest) {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&0o022 == 0 || i > 0 && info.Mode()&fs.ModeSticky != 0 {
			continue
		}
		return path, info.Mode()
	}
	return "", 0
}

// looksLikeScheme excludes paths, and the drive letters of Windows.
func looksLikeScheme(s string) bool {
	return len(s) > 1 &&
		!strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

func openMemory(_ context.Context, rest string, o Options) (ctxstore.Store, error) {
	if rest != "" {
		return nil, &ctxstore.Error{
			Code: ctxstore.Invalid,
			Err:  fmt.Errorf("mem: takes no %q", rest),
			Hint: "write mem: alone",
		}
	}
	return memory.New(memory.Config{MaxBytes: o.MaxBytes, Clock: o.Clock}), nil
}

func openBolt(_ context.Context, path string, o Options) (ctxstore.Store, error) {
	return opened(bolt.Open(path, bolt.Config{
		ReadOnly: o.ReadOnly, MaxBytes: cmp.Or(o.MaxBytes, FileBytes), Clock: o.Clock,
	}))
}

func openDirectory(_ context.Context, dir string, o Options) (ctxstore.Store, error) {
	return opened(directory.Open(dir, directory.Config{
		ReadOnly: o.ReadOnly, MaxBytes: cmp.Or(o.MaxBytes, FileBytes), Clock: o.Clock,
	}))
}

// openService opens the store of a context service.
func openService(scheme string) func(context.Context, string, Options) (ctxstore.Store, error) {
	return func(ctx context.Context, rest string, o Options) (ctxstore.Store, error) {
		if o.MaxBytes > 0 {
			return nil, &ctxstore.Error{Code: ctxstore.Invalid, At: scheme + rest,
				Err: errors.New("a context service decides on its own space"), Hint: "give the space to who serves it"}
		}
		return opened(wscontext.Open(ctx, scheme+rest, wscontext.RemoteConfig{
			ClientConfig: wscontext.ClientConfig{Token: o.Token, TLS: o.TLS}, ReadOnly: o.ReadOnly, Clock: o.Clock,
		}))
	}
}

// openNATS opens a bucket of NATS servers.
func openNATS(scheme string) func(context.Context, string, Options) (ctxstore.Store, error) {
	return func(ctx context.Context, rest string, o Options) (ctxstore.Store, error) {
		return opened(nats.Open(ctx, scheme+rest, nats.Config{
			ReadOnly: o.ReadOnly, MaxBytes: o.MaxBytes, Token: o.Token, TLS: o.TLS, Clock: o.Clock,
		}))
	}
}

// opened returns a store that was opened. A nil pointer to one is no nil Store.
func opened[S ctxstore.Store](s S, err error) (ctxstore.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
