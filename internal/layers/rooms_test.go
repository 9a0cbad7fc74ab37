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

// room is a package of a house, with its files from the lowest up. What a file refers to stands in
// files before it, except for so many pairs of files.
type room struct {
	name, files string
	up          int
}

// inside holds houses that are too large for one glance: their rooms from the lowest up. A room
// imports none above it, and a file refers to none above it in its room.
var inside = map[string][]room{
	"internal/shape": {
		{name: "internal/shape", files: "limits error node canonical serial shape builder print"},
		{name: "internal/shape/lexical", files: "limits prefix number float uuid datetime lines base64 utf16"},
		{name: "internal/shape/learn", files: `
			limits draft value_types forms rows choice attributes merge recurring learner
			document copy build family declare head`},
		{name: "internal/shape/code", files: "ops steps code"},
		{name: "internal/shape/items", files: "limits reader"},
		{name: "internal/shape/program", files: `
			limits program scan segment segment_values segment_pieces column splitter split_value
			split_column split_quick split joiner join_value join_column join`},
		{name: "internal/shape/columns", files: `
			limits bits counted text_words text_memory memory memory_fold walk column gatherer
			gather_rows gather dictionary packer pack_text pack_column pack_quick pack note bill unpacker
			unpack_text unpack_column unpack_rows unpack_quick unpack`},
		{name: "internal/shape/transit", files: "fold unfold transit", up: 1},
	},
}

// apart are packages whose files have an order, and that stand in no house of the table above.
var apart = []room{
	{name: "pkg/streamer", up: 9, files: `
		aliases errors limits transport traffic wire_bytes carried fifo semaphore signal handler_context peer_hello
		config message heads outbound ending sequence_note queue queue_credit queue_take stream acknowledge
		lane inbound call exchange exchanges close
		inbound_read stack serve arrivals
		body_writer reply calls oneway
		read_buffer handshake reader writer_state writer_note writer_shapes writer writer_now open upgrade`},
	{name: "internal/wire", up: 2, files: `
		stages shape_bases zstd wire pauses decoder_config encoder_config coder lane_memory plain_text
		shapes_in event blocked lanes_in
		decoder decoder_rest decoder_ask decoder_blocked decoder_data decoder_shape decoder_sync decoder_next
		sync_cost resynced shapes_out outgoing lanes_out
		encoder encoder_sync encoder_shape encoder_window encoder_unpacked encoder_data encoder_rest`},
	{name: "internal/session", up: 9, files: `
		limits certificate upgraded_conn portal by_reference connect refusal plain_calls config transports
		describe mode dialer remember nodes used outbox resume
		mid_session negotiation stream open_stream scheme declared rejoin asker alpn asker_transport offer question
		met paths
		runner common_store attempt lost judge first_call
		plain session session_sequence pending dial roundtripper origins idle`},
	{name: "internal/proxy", up: 18, files: `
		error limits usage keeper own_listeners client_conns raw_conns alone abilities lane_order config core
		control read_message refusal send_body coded copy_message parts http2_offer answer_writer replay
		measured pending_call upstream_log observer first_word server dial
		journey plain_way raw plain_calls plain_reply common_store in_sequence
		vacant progress caller link link_lanes client_memory caller_end caller_now
		caller_reply caller_request near_way
		upstream carry routes
		far_stream lane relay message
		context front choose late_hello upgrade offer client
		proxy reroute`},
	{name: "internal/responder", up: 2, files: `
		limits sequenced reply_head config fault exchange_writer fragments admit refusals
		one_path kept_facts remote_client served_session opened life
		sessions descriptions nethttp_sequenced sequenced_handler sequences kept_sequences offers joins
		streams served_stream responder serve restore plain_reply upgrade handler nethttp server`},
	{name: "internal/responder/machine", up: 2, files: "task event machine"},
	{name: "internal/session/machine", up: 1, files: "action config attempts machine event"},
	{name: "internal/frame", files: `
		errors frame close hello ack key data kept payload shape sync window idle resync cancel checks numbering parse
		sniff dissect`},
}

// Files refer to those below them, in packages that are large enough to have an order.
func TestRoomsPointDown(t *testing.T) {
	lookAtEveryFolder(t)
	exported := exportData(t)
	all := apart
	for _, rooms := range inside {
		all = slices.Concat(all, rooms)
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			sources := map[string]string{}
			names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(r.name), "*.go"))
			require.NoError(t, err)
			for _, name := range names {
				if !strings.HasSuffix(name, "_test.go") {
					b, err := os.ReadFile(name)
					require.NoError(t, err)
					sources[strings.TrimSuffix(filepath.Base(name), ".go")] = string(b)
				}
			}
			up, problems := climbs(t, path.Join(module, r.name), sources, strings.Fields(r.files), exported)
			assert.Empty(t, problems)
			assert.LessOrEqual(t, len(up), r.up, "references to files above:\n%s", strings.Join(up, "\n"))
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
	for name := range sources {
		if !slices.Contains(order, name) {
			problems = append(problems, name+" has no row")
		}
	}
	for _, name := range order {
		if _, ok := sources[name]; !ok {
			problems = append(problems, name+" is no file")
		}
	}
	for pair, what := range references(t, importPath, sources, exported) {
		if slices.Index(order, pair[0]) < slices.Index(order, pair[1]) {
			up = append(up, fmt.Sprintf("%s -> %s: %s", pair[0], pair[1], strings.Join(what, " ")))
		}
	}
	slices.Sort(up)
	slices.Sort(problems)
	return up, problems
}

// references has the names by which a file of a package refers to another one of it, by both files.
func references(t *testing.T, importPath string, sources, exported map[string]string) map[[2]string][]string {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range sources {
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
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
		if from != to {
			names[[2]string{from, to}] = append(names[[2]string{from, to}], object.Name())
		}
	}
	for pair, list := range names {
		slices.Sort(list)
		names[pair] = slices.Compact(list)
	}
	return names
}

// above reports whether a package stands above another in the house of both.
func above(upper, lower string) bool {
	rooms := inside[house(lower)]
	at := func(name string) int { return slices.IndexFunc(rooms, func(r room) bool { return r.name == name }) }
	return at(lower) >= 0 && at(upper) > at(lower)
}
