// Package layers_test holds the table of packages (docs/architecture.md) against what they really
// import.
package layers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/hhfr/hhfr"

// row is what one package may do. Its row also holds for the folders below it, unless they have one
// of their own.
type row struct {
	floor int
	// not are packages on lower floors that it knows nothing of all the same.
	not []string
	// third are the modules of others that it adapts.
	third []string
}

const base = -1

// commands has a package for each command.
const commands = "cmd/hhfr/internal/commands"

var (
	// belowCommands are what commands know nothing of.
	belowCommands = []string{
		"internal/frame", "internal/arq", "internal/window", "internal/datagram", "internal/bin", "internal/xmlns",
		"internal/shape/learn", "internal/shape/program", "internal/shape/columns", "internal/shape/code",
		"internal/shape/items", "internal/shape/lexical", "internal/shape/recall", "internal/shape/style",
		"internal/few", "internal/reuse", "internal/deflate", "internal/inproc", "internal/timeline",
		"internal/spool", "internal/oneport", "internal/upgrade", "internal/sequenced",
	}
	// aboveResults are what those know nothing of that print what came of messages.
	aboveResults = append([]string{
		"cmd/hhfr/internal/stores", commands, "cmd/hhfr/internal/client", "cmd/hhfr/internal/dial",
		"cmd/hhfr/internal/reliable", "cmd/hhfr/internal/server", "cmd/hhfr/internal/trust",
	}, belowCommands...)
	// terminals are the modules of command lines and terminals.
	terminals = []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "golang.org/x/sys/unix",
	}
)

// A package may import those of lower floors, and those under the same topmost folder of this
// table; nothing else of the module.
var plan = map[string]row{
	// The program is main, which puts together its commands, and below it a package for each of
	// them and for what several have.
	"cmd/hhfr":                   {floor: 10, not: belowCommands, third: terminals},
	"cmd/hhfr/internal":          {floor: 10, not: append([]string{commands}, belowCommands...), third: terminals},
	"cmd/hhfr/internal/commands": {floor: 10, not: belowCommands, third: terminals},
	"cmd/hhfr/internal/screen": {
		floor: 10, not: aboveResults, third: append([]string{
			"charm.land/bubbletea/v2", "github.com/charmbracelet/colorprofile", "github.com/charmbracelet/x/ansi",
		}, terminals...),
	},
	// What is sent knows of no session, and what is printed of nothing that is opened.
	"cmd/hhfr/internal/outgoing": {
		floor: 10, not: slices.Concat(aboveResults, []string{"internal/session", "cmd/hhfr/internal/results"}),
		third: terminals,
	},
	"cmd/hhfr/internal/results": {floor: 10, not: aboveResults, third: terminals},
	"cmd/hhfr/internal/statistics": {
		floor: 10, not: aboveResults, third: []string{"github.com/HdrHistogram/hdrhistogram-go"},
	},
	"cmd/hhfr/internal/listing": {
		floor: 10, not: slices.Concat(aboveResults[1:], []string{"internal/session", "internal/sender"}),
		third: terminals,
	},
	// Where calls go is read without anything that is open.
	"cmd/hhfr/internal/routes": {
		floor: 10, not: slices.Concat(aboveResults[:6], belowCommands), third: terminals,
	},
	"cmd/hhfr/internal/accesslog": {
		floor: 10, not: slices.Concat(aboveResults, []string{"internal/session", "internal/proxy"}), third: terminals,
	},
	"cmd/hhfr/internal/client": {
		floor: 10, not: slices.Concat(belowCommands, []string{
			commands, "cmd/hhfr/internal/dial", "cmd/hhfr/internal/reliable", "cmd/hhfr/internal/results",
			"internal/session",
		}), third: terminals,
	},

	"internal/replay":    {floor: 9},
	"internal/dissect":   {floor: 8},
	"internal/bench":     {floor: 9},
	"internal/load":      {floor: 9, third: []string{"github.com/HdrHistogram/hdrhistogram-go"}},
	"internal/report":    {floor: 9, not: []string{"internal/bench", "internal/load"}},
	"internal/demo":      {floor: 9},
	"internal/doctor":    {floor: 9},
	"internal/estimate":  {floor: 9, third: []string{"github.com/klauspost/compress"}},
	"internal/inspector": {floor: 9, third: []string{"github.com/klauspost/compress"}},
	"internal/transcode": {floor: 9, third: []string{"github.com/klauspost/compress"}},

	"internal/monitor":            {floor: 9},
	"internal/monitor/prometheus": {floor: 9, third: []string{"github.com/VictoriaMetrics/metrics"}},

	// The door is the root of the module.
	".": {floor: 8, not: []string{"internal/frame", "internal/shape"}},

	"internal/peer":    {floor: 7},
	"internal/sender":  {floor: 7},
	"internal/proxy":   {floor: 7},
	"internal/capture": {floor: 7},
	// The packet layer of captures knows nothing of hhfr.
	"internal/flow": {
		floor: 6,
		not:   []string{"pkg/streamer", "internal/shape", "pkg/soap", "pkg/ctxstore"},
		third: []string{"github.com/andybalholm/brotli", "github.com/klauspost/compress"},
	},

	// The two sides of a session know nothing of each other.
	"internal/session":   {floor: 6, not: []string{"internal/frame"}},
	"internal/responder": {floor: 6, not: []string{"internal/frame"}},
	// Which state a session is in, and what comes next: no lock, clock, socket or goroutine.
	"internal/session/machine": {floor: 0},
	// Which sessions a responder has, and whose records stay: the same.
	"internal/responder/machine": {floor: 1, not: []string{"internal/netconn"}},

	"internal/upgrade":    {floor: 5, not: []string{"internal/frame"}},
	"internal/httpmsg":    {floor: 5, not: []string{"internal/frame"}},
	"internal/infosets":   {floor: 5, not: []string{"internal/frame", "internal/shape", "pkg/streamer"}},
	"internal/coders":     {floor: 5, not: []string{"internal/frame"}},
	"internal/once":       {floor: 5, not: []string{"internal/shape", "pkg/streamer"}},
	"internal/solo":       {floor: 5, not: []string{"pkg/streamer"}, third: []string{"github.com/google/uuid"}},
	"internal/unchanging": {floor: 5, not: []string{"internal/frame"}},
	"internal/sequenced":  {floor: 5, not: []string{"internal/shape", "pkg/streamer"}},

	"internal/engines":    {floor: 3}, // a table of engines
	"internal/recordings": {floor: 3}, // finds shapes in a store
	// Code that it writes uses the door; it does not.
	"internal/gocode": {floor: 3, not: []string{"internal/shape", "pkg/streamer", "internal/values"}},
	"internal/mock":   {floor: 3, not: []string{"internal/shape", "pkg/streamer"}},
	"internal/typed":  {floor: 3, not: []string{"pkg/streamer", "internal/wire"}},
	"pkg/negotiate":   {floor: 4, not: []string{"internal/frame"}, third: []string{"github.com/google/uuid"}},

	// The core knows none of its transports.
	"pkg/streamer": {floor: 3, not: []string{
		"pkg/streamer/tcp", "pkg/streamer/tls", "pkg/streamer/udp", "internal/inproc",
		"internal/shape/transit", "pkg/schema", "pkg/soap", "internal/xmltext", "internal/xmlns",
	}},
	// What both ends of a stream need to read each other.
	"pkg/streamer/coding": {floor: 3, not: []string{"internal/shape", "pkg/soap", "pkg/schema"}},
	"pkg/streamer/tcp":    {floor: 3, not: []string{"internal/shape"}},
	"pkg/streamer/tls":    {floor: 3, not: []string{"internal/shape"}},
	"pkg/streamer/udp":    {floor: 3, not: []string{"internal/shape"}},
	"internal/meter": {floor: 4, not: []string{
		"pkg/streamer/tcp", "pkg/streamer/tls", "pkg/streamer/udp", "internal/shape",
	}},
	"internal/sequence": {floor: 4, not: []string{
		"pkg/streamer/tcp", "pkg/streamer/tls", "pkg/streamer/udp", "internal/shape",
	}},
	// Connections in memory, which know nothing of what they carry.
	"internal/inproc": {floor: 4, not: []string{
		"internal/shape", "internal/frame", "internal/wire", "pkg/streamer", "pkg/soap", "pkg/ctxstore",
	}},
	// The machines of a direction are below the codec, which hands them content.
	"internal/wire":  {floor: 1, third: []string{"github.com/klauspost/compress"}},
	"internal/frame": {floor: 0, not: []string{"internal/shape"}},

	"internal/codec/binary": {floor: 2},
	"internal/codec/fastinfoset": {
		floor: 2, not: []string{"internal/shape", "pkg/streamer", "pkg/ctxstore", "pkg/soap"},
	},
	"pkg/wsrm":          {floor: 2},
	"pkg/wsrm/soaprm":   {floor: 3, not: []string{"internal/shape", "pkg/streamer"}},
	"pkg/ctxstore":      {floor: 2, not: []string{"pkg/schema", "pkg/soap"}},
	"pkg/ctxstore/bolt": {floor: 2, not: []string{"pkg/schema", "pkg/soap"}, third: []string{"go.etcd.io/bbolt"}},
	"pkg/ctxstore/nats": {
		floor: 2, not: []string{"pkg/schema", "pkg/soap"}, third: []string{"github.com/nats-io/nats.go"},
	},
	"internal/soapjms": {
		floor: 3, not: []string{"internal/shape", "pkg/streamer", "pkg/ctxstore"},
		third: []string{"github.com/Azure/go-amqp", "github.com/google/uuid"},
	},
	"pkg/ctxstore/wscontext": {floor: 2, not: []string{"pkg/schema"}, third: []string{"github.com/google/uuid"}},
	"internal/spare":         {floor: 3}, // an engine
	"pkg/ctxstore/pieces":    {floor: 2, not: []string{"pkg/schema", "pkg/soap"}},
	"pkg/ctxstore/storetest": {floor: 2, third: []string{"github.com/stretchr/testify"}},

	"internal/bind":     {floor: 2, not: []string{"internal/shape", "internal/wire", "pkg/ctxstore", "pkg/schema"}},
	"internal/values":   {floor: 2, not: []string{"internal/shape", "internal/wire", "pkg/ctxstore"}},
	"internal/wsdl":     {floor: 1},
	"internal/envelope": {floor: 1, not: []string{"internal/shape", "pkg/streamer", "pkg/ctxstore"}},
	"internal/xsd":      {floor: 0, not: []string{"internal/shape"}},
	"pkg/schema":        {floor: 1},
	"pkg/soap":          {floor: 1, third: []string{"github.com/beevik/etree"}},

	// The order of the rooms in this house is in the table inside.
	"internal/shape":         {floor: 0},
	"internal/shape/lexical": {floor: 0},
	"internal/shape/learn":   {floor: 0},
	"internal/shape/code":    {floor: 0, not: []string{"internal/shape/learn"}},
	"internal/shape/items":   {floor: 0, not: []string{"internal/shape/learn", "internal/shape/code"}},
	"internal/shape/program": {floor: 0, not: []string{"internal/shape/learn"}},
	"internal/shape/columns": {floor: 0, not: []string{"internal/shape/learn"}},
	"internal/shape/transit": {
		floor: 0, not: []string{"internal/shape"}, third: []string{"github.com/klauspost/compress"},
	},
	"internal/shape/style": {floor: 0, not: []string{"internal/shape/learn", "internal/shape/program"}},
	"internal/shape/recall": {
		floor: 0, not: []string{"internal/shape/learn", "internal/shape/code"},
		third: []string{"github.com/klauspost/compress"},
	},

	"internal/bin":          {floor: base},
	"internal/few":          {floor: base},
	"internal/fault":        {floor: base},
	"internal/deflate":      {floor: base},
	"internal/reuse":        {floor: base},
	"pkg/clock":             {floor: base},
	"internal/xmltext":      {floor: base},
	"internal/xmltext/pull": {floor: 0}, // knows namespaces
	"internal/xmlns":        {floor: base},
	"internal/http1":        {floor: base},
	"internal/browser":      {floor: base},
	"internal/netconn":      {floor: base, third: []string{"golang.org/x/sys/unix"}},
	"internal/pcap":         {floor: base},
	"internal/pcapng":       {floor: 0},
	// Captured TLS, and interfaces, know nothing of what they carry.
	"internal/tlsrecord": {floor: base, third: []string{"golang.org/x/crypto/chacha20poly1305"}},
	"internal/live": {
		floor: base,
		third: []string{"github.com/gopacket/gopacket", "golang.org/x/net/bpf", "golang.org/x/sys/unix"},
	},
	"internal/resolve":  {floor: base, third: []string{"golang.org/x/net/dns/dnsmessage"}},
	"internal/sdnotify": {floor: base, third: []string{"golang.org/x/sys/unix"}},
	"internal/experiment": {
		floor: 0, // reads the clock
		third: []string{"golang.org/x/perf/benchmath"},
	},
	"internal/link":        {floor: 0}, // waits on the clock
	"internal/accept":      {floor: 0}, // waits on the clock
	"internal/sock":        {floor: 0}, // waits on the clock
	"internal/principal":   {floor: 0}, // reads heads with internal/http1
	"internal/oneport":     {floor: 2}, // recognizes a hello
	"internal/window":      {floor: 0}, // reads packets with internal/bin
	"internal/datagram":    {floor: base},
	"internal/arq":         {floor: 1}, // works on the window
	"pkg/workload":         {floor: base},
	"internal/shared":      {floor: base},
	"internal/papers":      {floor: base},
	"internal/filter":      {floor: base},
	"internal/xmltree":     {floor: 1},
	"internal/xpath":       {floor: 2, third: []string{"github.com/antchfx/xpath"}},
	"internal/timeline":    {floor: base},
	"internal/spool":       {floor: base},
	"internal/layers":      {floor: base},
	"internal/middleboxes": {floor: 8}, // tests of everything below
	"testdata/soap":        {floor: base},
	"packaging":            {floor: base},
}

// forTests are the modules that any test may use, and no other code.
var forTests = []string{
	"github.com/russellhaering/goxmldsig",
	"github.com/beevik/etree",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"github.com/stretchr/testify",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"github.com/nats-io/nats-server",
	"golang.org/x/sys/unix",         // terminals
	"github.com/klauspost/compress", // rivals
	"github.com/gopacket/gopacket",  // packets
}

// withUnsafe are packages that use unsafe: for system calls, and for the fields of structs.
var withUnsafe = []string{"internal/netconn", "internal/bind"}

// withCgo are packages of adapted modules that need cgo.
var withCgo = []string{"github.com/gopacket/gopacket/pcap", "github.com/gopacket/gopacket/pfring"}

type pkg struct {
	ImportPath, Name                   string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

func TestImportsPointDown(t *testing.T) {
	lookAtEveryFolder(t)
	for _, system := range []string{"linux", "windows", "android", "darwin"} {
		t.Run(system, func(t *testing.T) {
			for _, p := range packages(t, system) {
				for _, problem := range problems(p) {
					t.Errorf("%s: %s", p.ImportPath, problem)
				}
			}
		})
	}
}

// The check itself finds what it should.
func TestProblemsAreFound(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		fine     bool
	}{
		{"pkg/soap", "internal/shape", true},
		{"internal/shape", "pkg/soap", false},
		{"internal/shape", "internal/bin", true},
		{"internal/codec/binary", "pkg/ctxstore", false},
		{"internal/codec/binary", "internal/codec/per", false},
		{"pkg/ctxstore/memory", "pkg/ctxstore", true},
		{"pkg/ctxstore", "pkg/ctxstore/memory", true},
		{"pkg/streamer", "pkg/soap", false},
		{"pkg/streamer/tcp", "pkg/streamer", true},
		{"pkg/streamer/tcp", "internal/shape", false},
		{"pkg/streamer", "pkg/streamer/udp", false},
		{"internal/sequence", "pkg/streamer/tcp", false},
		{"pkg/negotiate", "internal/frame", false},
		{"pkg/negotiate", "pkg/streamer", true},
		{"internal/peer", "internal/capture", false},
		{"internal/http1", "internal/bin", false},
		{"internal/shape/columns", "internal/shape/program", true},
		{"internal/shape/program", "internal/shape/columns", false},
		{"internal/shape/program", "internal/shape/learn", false},
		{"internal/shape", "internal/shape/lexical", false},
		{"pkg/new", "internal/shape", false},
		{"internal/shape", "pkg/new", false},
		{"cmd/hhfr", "internal/demo", true},
		{"cmd/hhfr", ".", true},
		{"cmd/hhfr", "cmd/hhfr/internal/commands/serve", true},
		{"cmd/hhfr/internal/commands/serve", "cmd/hhfr/internal/flags", true},
		{"cmd/hhfr/internal/commands/serve", "cmd/hhfr/internal/commands/stream", false},
		{"cmd/hhfr/internal/commands/serve", "internal/frame", false},
		{"cmd/hhfr/internal/commands", "cmd/hhfr/internal/commands/stream", true},
		{"cmd/hhfr/internal/flags", "cmd/hhfr/internal/commands/stream", false},
		{"cmd/hhfr/internal/outgoing", "internal/session", false},
		{"cmd/hhfr/internal/results", "cmd/hhfr/internal/client", false},
		{"cmd/hhfr/internal/results", "internal/frame", false},
		{"cmd/hhfr/internal/client", "cmd/hhfr/internal/commands/stream", false},
		{"cmd/hhfr/internal/routes", "cmd/hhfr/internal/server", false},
		{"cmd/hhfr/internal/routes", "internal/proxy", true},
		{"internal/demo", ".", true},
		{"internal/proxy", ".", false},
		{".", "pkg/negotiate", true},
		{".", "internal/demo", false},
		{".", "internal/frame", false},
		{".", "pkg/new", false},
	} {
		imports := []string{path.Join(module, tc.to), "strings"}
		got := problems(pkg{ImportPath: path.Join(module, tc.from), Imports: imports})
		assert.Equal(t, tc.fine, len(got) == 0, "%s imports %s: %v", tc.from, tc.to, got)
	}
	for _, tc := range []struct {
		p    pkg
		fine bool
	}{
		{pkg{ImportPath: "cmd/hhfr", Imports: []string{"github.com/spf13/cobra/doc"}}, true},
		{pkg{ImportPath: "internal/peer", Imports: []string{"github.com/spf13/cobra"}}, false},
		{pkg{ImportPath: "internal/live", Imports: []string{"github.com/gopacket/gopacket/afpacket"}}, true},
		{pkg{ImportPath: "internal/live", Imports: []string{"github.com/gopacket/gopacket/pcap"}}, false},
		{pkg{ImportPath: "internal/flow", Imports: []string{"github.com/gopacket/gopacket/layers"}}, false},
		{pkg{ImportPath: "internal/flow", XTestImports: []string{"github.com/gopacket/gopacket/layers"}}, true},
		{pkg{ImportPath: "internal/peer", Imports: []string{"github.com/stretchr/testify/assert"}}, false},
		{pkg{ImportPath: "internal/peer", XTestImports: []string{"github.com/stretchr/testify/assert"}}, true},
		{pkg{ImportPath: "internal/peer", TestImports: []string{"github.com/other/module"}}, false},
		{pkg{ImportPath: "internal/peer", Imports: []string{"unsafe"}}, false},
		{pkg{ImportPath: "internal/netconn", Imports: []string{"unsafe"}}, true},
		{pkg{ImportPath: "internal/bind", Imports: []string{"unsafe"}}, true},
		{pkg{ImportPath: "internal/peer", Imports: []string{"C"}}, false},
		{pkg{ImportPath: "internal/peer", Imports: []string{"github.com/stretchr/testifyother"}}, false},
	} {
		tc.p.ImportPath = module + "/" + tc.p.ImportPath
		got := problems(tc.p)
		assert.Equal(t, tc.fine, len(got) == 0, "%+v: %v", tc.p, got)
	}
}

func problems(p pkg) (list []string) {
	name, _ := ours(p.ImportPath)
	mine, ok := find(name)
	if !ok {
		return []string{"no row in the plan: see docs/architecture.md, then internal/layers"}
	}
	for _, imported := range p.Imports {
		inside, own := ours(imported)
		switch {
		case own:
			if why := refuse(name, mine, inside); why != "" {
				list = append(list, why)
			}
		case imported == "C", imported == "unsafe" && !slices.Contains(withUnsafe, name):
			list = append(list, "imports "+imported)
		case isThird(imported) && (!within(imported, mine.third) || within(imported, withCgo)):
			list = append(list, "imports "+imported+", which is not its to adapt")
		}
	}
	for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
		_, own := ours(imported)
		if isThird(imported) && !own && !within(imported, mine.third) && !within(imported, forTests) {
			list = append(list, "its tests import "+imported)
		}
	}
	return list
}

// ours is the folder of a package of the module, "." for its root.
func ours(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func refuse(name string, mine row, imported string) string {
	theirs, ok := find(imported)
	switch {
	case !ok:
		return "imports " + imported + ", which has no row"
	case within(imported, mine.not):
		return "imports " + imported + ", of which it knows nothing"
	case name != commands && within(name, []string{commands}) && within(imported, []string{commands}):
		return "imports " + imported + ", which is another command"
	case above(imported, name):
		return "imports " + imported + ", which is above it in " + house(name)
	case house(name) == house(imported):
		return ""
	case theirs.floor >= mine.floor:
		return "imports " + imported + ", which is not below it"
	}
	return ""
}

// find returns the row for a package: its own, or that of the nearest folder above it, but for the
// root.
func find(name string) (row, bool) {
	if name == "." {
		return plan[name], true
	}
	for ; name != "."; name = path.Dir(name) {
		if r, ok := plan[name]; ok {
			return r, true
		}
	}
	return row{}, false
}

// house is the topmost folder above a package that has a row.
func house(name string) (top string) {
	if name == "." {
		return name
	}
	for ; name != "."; name = path.Dir(name) {
		if _, ok := plan[name]; ok {
			top = name
		}
	}
	return top
}

func within(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") })
}

func isThird(imported string) bool {
	host, _, _ := strings.Cut(imported, "/")
	return strings.Contains(host, ".")
}

// lookAtEveryFolder makes the sources an input of this test: go test would otherwise repeat an old
// result from its cache, since it does not see what the go command it starts reads.
func lookAtEveryFolder(t *testing.T) {
	t.Helper()
	_, err := filepath.Glob(filepath.Join("..", "..", "*.go"))
	require.NoError(t, err)
	for _, top := range []string{"cmd", "internal", "pkg"} {
		look := func(_ string, _ fs.DirEntry, err error) error { return err }
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", top), look))
	}
}

func packages(t *testing.T, system string) (list []pkg) {
	t.Helper()
	const fields = "-json=ImportPath,Name,GoFiles,Imports,TestImports,XTestImports"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", fields, module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if p.Name != "" { // a folder without files has none
			list = append(list, p)
		}
	}
	require.Greater(t, len(list), 5, "the module's packages were not found")
	return list
}
