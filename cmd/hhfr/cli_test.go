package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

// TestManual holds docs/cli.md against the commands as they are.
func TestManual(t *testing.T) {
	path := shared.Testdata(t, "..", "docs", "cli.md")
	want := manual(newRoot(Env{}))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	require.Equal(t, want, string(shared.Read(t, path)), "stale: go test ./cmd/hhfr -run TestManual -update")
}

func manual(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(manualHead)
	section(&b, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			section(&b, c)
		}
	}
	b.WriteString(manualJSON)
	return b.String()
}

func section(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n%s\n\n```sh\n%s\n```\n\n", c.CommandPath(), c.Short+".", c.Long, c.Example)
	flags := c.NonInheritedFlags()
	if !c.HasParent() {
		flags = c.PersistentFlags()
	}
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, value, f.Usage)
	})
}

const manualHead = `# The command line

Made by ` + "`go test ./cmd/hhfr -run TestManual -update`" + ` from the commands themselves.

Data goes to stdout, all else to stderr. ` + "`-`" + ` is stdin or stdout. The first Ctrl-C ends a command with what there is, the second at once.
A flag that the command line does not set is taken from ` + "`HHFR_FLAG`" + ` (upper case, ` + "`_`" + ` for ` + "`-`" + `), else from the file that ` + "`--config`" + ` names.

| exit code | |
|---|---|
| 0 | done |
| 1 | failed: a fault, a difference, nothing found |
| 2 | the command line is wrong |
| 3 | no connection, or no hhfr although ` + "`--require-hhfr`" + ` |
| 4 | malformed or undecodable input |
| 5 | partial: octets or shapes missing, checks that fail, fate unknown, interrupted; ` + "`--lenient`" + ` makes that 0 |
`

const manualJSON = `
## JSON

Every object or its last line has a ` + "`version`" + `, 1 for all here; fields are added within a version, never changed or removed. Octets are in fields that end in ` + "`_base64`" + `.

**decode, reconstruct** ` + "`-o json`" + `: one object.

| field | |
|---|---|
| ` + "`messages`" + ` | list, in the order of first octets; ` + "`-o jsonl`" + ` prints these alone, one a line |
| ` + "`messages[].number`" + ` | of the exchange in sending order, as in file names of --save-dir; 0: a negotiation |
| ` + "`messages[].session`" + `, ` + "`lane`" + `, ` + "`exchange`" + ` | of a stream; session - is plain SOAP in HTTP |
| ` + "`messages[].kind`" + ` | request, reply, one-way |
| ` + "`messages[].source`" + `, ` + "`target`" + `, ` + "`first`" + `, ` + "`last`" + `, ` + "`packet`" + ` | addresses, times (RFC 3339, UTC) and number of the first packet, where a capture tells |
| ` + "`messages[].soap`" + `, ` + "`operation`" + `, ` + "`operation_namespace`" + ` | version 1.1 or 1.2, and the child of the Body |
| ` + "`messages[].wire_octets`" + `, ` + "`body_octets`" + `, ` + "`head_octets`" + ` | frames or HTTP message; envelope; HTTP head, 0 if it is the default one |
| ` + "`messages[].state`" + `, ` + "`why`" + `, ` + "`lacks_shape`" + ` | verified, unverified, withdrawn, incomplete, cancelled, undecodable; the reason; the URI of the shape that is missing |
| ` + "`messages[].head_base64`" + `, ` + "`body_base64`" + ` | as received |
| ` + "`streams[]`" + ` | session, source, target, facts (what the recording says of the session), octets of both directions by purpose (data, shape, sync, other), problems, cut |
| ` + "`capture`" + ` | packets, tcp_connections, udp_datagrams, gaps, missing_octets, undecoded_packets by reason, truncated, truncated_at |
| ` + "`others`" + ` | what else was found, counted |
| ` + "`partial`" + ` | something is missing: exit code 5 |

**stream** ` + "`-o json`" + `: a line per reply, in sending order, then a line with ` + "`summary`" + `.

| field | |
|---|---|
| ` + "`number`" + `, ` + "`name`" + `, ` + "`operation`" + ` | the message sent |
| ` + "`status`" + `, ` + "`fault`" + ` | HTTP status; whether the reply is a failure |
| ` + "`sent_octets`" + `, ` + "`received_octets`" + `, ` + "`ms`" + ` | envelopes, time until the whole reply was there |
| ` + "`head_base64`" + `, ` + "`body_base64`" + ` | the reply; no head: the default one |
| ` + "`summary.hhfr`" + `, ` + "`session`" + `, ` + "`why_plain`" + ` | whether a stream was agreed, and why not |
| ` + "`summary.messages`" + `, ` + "`failed`" + `, ` + "`ms`" + `, ` + "`slowest_ms`" + ` | |
| ` + "`summary.envelope_octets`" + `, ` + "`http_head_octets`" + ` | sent and received |
| ` + "`summary.stream_octets`" + `, ` + "`stream_shape_octets`" + `, ` + "`stream_sync_octets`" + ` | frames of the stream, sent and received; shapes and syncs are part of the first |
| ` + "`summary.http_octets`" + ` | connections for negotiation and plain SOAP |

**serve** ` + "`-o json`" + `: one object: ` + "`addresses`" + ` (http, tcp), ` + "`services`" + ` by name with ` + "`url`" + ` and ` + "`curl`" + `.

**demo** ` + "`-o json`" + `: ` + "`session`" + ` (what was agreed), ` + "`rows`" + ` and ` + "`total`" + ` (envelope_octets, http_head_octets, shape_octets, hhfr_first_octets, hhfr_second_octets there and back; same), ` + "`same`" + `.

**transcode** ` + "`--stats -o json`" + `: a line per message, then ` + "`total`" + `: raw, gzip, zstd, shape, content and frame octets, split_ns, join_ns, shapes_learned, shapes_widened, exceptions.

**version** ` + "`-o json`" + `: version, commit, go, os, arch, scheme.
`
