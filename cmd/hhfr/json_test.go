package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/bench"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/call"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/contexts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/demo"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/doctor"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/estimate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/negotiate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/proxy"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/replay"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/schema"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/transcode"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/statistics"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor"
	transcoded "github.com/hhfr/hhfr/internal/transcode"
	"github.com/hhfr/hhfr/internal/values"
)

// printedForm is a JSON value that hhfr prints. Forms with the same name are the kinds of lines of
// one output.
type printedForm struct {
	name  string // of its definition in the schema: the command, then jsonl if that is the format
	about string // in docs/json.md; empty: it is described with another form
	typ   reflect.Type
}

// section is the part of docs/json.md that has the form.
func (p printedForm) section() string { command, _, _ := strings.Cut(p.name, "-"); return command }

// printed is all JSON that hhfr prints. Comments of the types' fields say what they mean.
var printed = []printedForm{
	{"decode", "one object. `-o jsonl` prints its `messages` alone, one a line",
		reflect.TypeFor[listing.DecodeReport]()},
	{"decode-jsonl", "", reflect.TypeFor[listing.MessageReport]()},
	{"decode-jsonl", "with `-o jsonl` from a pipe, a line for each check of a stream, about messages that were\n" +
		"listed before as unverified", reflect.TypeFor[listing.CheckReport]()},
	{"decode-jsonl", "with `-o jsonl`, behind all others, a line for each sequence of WS-ReliableMessaging",
		reflect.TypeFor[listing.SequenceLine]()},
	{"decode", "with `--stats`: one object", reflect.TypeFor[statistics.CountReport]()},
	{"doctor", "one object", reflect.TypeFor[doctor.DoctorReport]()},
	{"estimate", "one object", reflect.TypeFor[estimate.EstimateReport]()},
	{"reconstruct", "as `decode`", nil},
	{"stream", "a line for each reply, in sending order", reflect.TypeFor[results.ExchangeReport]()},
	{"stream", "with `--listen` a line for each server-initiated message", reflect.TypeFor[results.ServerMessage]()},
	{"stream", "a message of unknown fate has, in place of what its reply would say",
		reflect.TypeFor[results.UnknownReport]()},
	{"stream", "the last line", reflect.TypeFor[results.StreamEnd]()},
	{"negotiate", "one object", reflect.TypeFor[negotiate.NegotiateReport]()},
	{"serve", "one object, once it listens", reflect.TypeFor[serve.ServeReport]()},
	{"demo", "one object", reflect.TypeFor[demo.DemoReport]()},
	{"transcode", "with `--stats` a line for each message. Times are in nanoseconds",
		reflect.TypeFor[transcoded.Figures]()},
	{"transcode", "the last line", reflect.TypeFor[transcode.TranscodeTotal]()},
	{"schema-compile", "`compile`: one object", reflect.TypeFor[schema.CompileReport]()},
	{"schema-show", "`show`: one object", reflect.TypeFor[schema.ShownMessages]()},
	{"schema-diff", "`diff`: one object", reflect.TypeFor[schema.ChangeReport]()},
	{"schema-check", "`check`: one object", reflect.TypeFor[schema.Checked]()},
	{"schema-hhfr", "`hhfr`: one object", reflect.TypeFor[schema.HHFRSchemas]()},
	{"list", "one object", reflect.TypeFor[call.OperationList]()},
	{"describe", "one object", reflect.TypeFor[call.DescribedOperations]()},
	{"call", "the values of the reply alone ([values.md](values.md)); with `--full` one object for each call",
		reflect.TypeFor[call.WholeExchange]()},
	{"context-list", "`list`: one object. `-o jsonl` prints its `entries` alone, one a line",
		reflect.TypeFor[contexts.ContextListing]()},
	{"context-list-jsonl", "", reflect.TypeFor[contexts.ContextEntry]()},
	{"context-get", "`get`: one object", reflect.TypeFor[contexts.ContextValue]()},
	{"context-watch-jsonl", "`watch`: a line for each change", reflect.TypeFor[contexts.ContextChange]()},
	{"context-export", "`export`: one object, in numbers of entries", reflect.TypeFor[contexts.ContextExported]()},
	{"context-import", "`import`: one object, in numbers of entries", reflect.TypeFor[contexts.ContextImported]()},
	{"context-put", "`put`: one object", reflect.TypeFor[contexts.ContextPutReport]()},
	{"context-delete", "`delete`: one object", reflect.TypeFor[contexts.ContextDeleted]()},
	{"context-serve", "`serve`: one object, once it listens", reflect.TypeFor[contexts.ContextServing]()},
	{"replay", "a line for each exchange", reflect.TypeFor[replay.ReplayLine]()},
	{"replay", "the last line", reflect.TypeFor[replay.ReplayEnd]()},
	{"bench-session", "`session`: one object", reflect.TypeFor[bench.BenchReport]()},
	{"bench-load", "`load`: one object", reflect.TypeFor[bench.LoadReport]()},
	{"proxy", "one object, once it listens, or would listen by `--check`", reflect.TypeFor[proxy.ProxyReport]()},
	{"version", "one object, whose `version` is that of hhfr", reflect.TypeFor[cmdline.VersionInfo]()},
	{"log", "all commands, with `--log-format json`: a line on stderr, an object with these and further values,\n" +
		"each a string, a number, true or false", reflect.TypeFor[logLine]()},
	{"accesses", "`proxy` and `serve`, with `--access-log-format json`: a line for each call in the file of\n" +
		"`--access-log` ([metrics.md](metrics.md#access-log))", reflect.TypeFor[accessLine]()},
	{"status", "`proxy` and `serve`, with `--metrics`: the answer to GET `/status?format=json`\n" +
		"([metrics.md](metrics.md))", reflect.TypeFor[meter.Snapshot]()},
	{"resync", "`proxy` and `serve`, with `--metrics`: the answer to POST `/status`",
		reflect.TypeFor[monitor.Resynced]()},
}

// printsValues are the commands whose JSON is the values of a message, which may be any.
var printsValues = map[string]bool{"call": true, "schema-sample": true}

// isValues reports whether a type is such values.
func isValues(typ reflect.Type) bool { return typ == reflect.TypeFor[values.JSON]() }

// titles are those of the sections about no command.
var titles = map[string]string{"log": "Lines on stderr", "accesses": "The access log", "status": "The status",
	"resync": "Syncs"}

// logLine is what package slog makes of a report on stderr.
type logLine struct {
	Time  time.Time `json:"time"`  // of the report, RFC 3339
	Level string    `json:"level"` // DEBUG, INFO, WARN or ERROR
	Msg   string    `json:"msg"`   // what happened
	// of an error: the exit code of the command
	ExitCode int    `json:"exit_code,omitempty"`
	Hint     string `json:"hint,omitempty"` // of an error: what to do
}

// accessLine is what package slog makes of a call.
type accessLine struct {
	Time      time.Time `json:"time"`      // when the call began, RFC 3339 in UTC
	Client    string    `json:"client"`    // address of the client; at a far half that of the near half
	Role      string    `json:"role"`      // near, far or serve
	Upstream  string    `json:"upstream"`  // where the route of the call led
	Operation string    `json:"operation"` // local name of the first element in the Body
	Way       string    `json:"way"`       // stream or plain
	Status    int       `json:"status"`    // that of the final reply; 0: there was none, or it is not known
	OK        bool      `json:"ok"`        // false: the call failed
	// the code of the SOAP fault that the reply is, without its prefix; -: it shows none
	Fault        string `json:"fault,omitempty"`
	RequestBytes int64  `json:"request_bytes"` // as HTTP has them at this end
	ReplyBytes   int64  `json:"reply_bytes"`   // likewise
	// of the data frames of the call on the link; only over a stream
	SentBytes     int64   `json:"sent_bytes,omitempty"`
	ReceivedBytes int64   `json:"received_bytes,omitempty"`
	Reason        string  `json:"reason,omitempty"`        // why there was no stream; only of plain calls
	Seconds       float64 `json:"seconds"`                 // from the request to the end of its reply, at this end
	AddedSeconds  float64 `json:"added_seconds,omitempty"` // of it, what this half added; only over a stream
}

// valuesOf are the values of fields that have one of a few.
var valuesOf = map[string][]string{
	"messageReport.state": {
		capture.Verified.String(), capture.Unverified.String(), capture.Unchecked.String(), capture.Withdrawn.String(),
		capture.Incomplete.String(), capture.Cancelled.String(), capture.Undecodable.String(),
	},
	"messageReport.direction":   {listing.DirectionName(0), listing.DirectionName(1)},
	"checkReport.check":         {capture.Verified.String(), capture.Withdrawn.String()},
	"checkReport.direction":     {listing.DirectionName(0), listing.DirectionName(1)},
	"replay.Difference.what":    {"status", "body", "content"},
	"replay.ContentChange.what": {"text", "attribute", "missing", "added"},
}

const jsonHead = `# What commands print as JSON

Made by ` + "`go test ./cmd/hhfr -run TestManual -update`" + ` from the commands themselves
([cli.md](cli.md)).

An object has a ` + "`version`" + `, 1 for all here but ` + "`hhfr version`" + `; where a command prints several
lines, the last one has it. Within a version fields are added, never changed or removed. Bytes are
in base64, in fields whose names end in ` + "`_base64`" + `. Optional fields are left out where they do
not apply.

[json.schema.json](../cmd/hhfr/json.schema.json) says the same as a JSON Schema (draft 2020-12),
which ` + "`hhfr help json-schema`" + ` prints. Each output has a definition of its own, named by the command:
` + "`#/$defs/decode`, `#/$defs/decode-jsonl`, `#/$defs/context-list`" + ` and so on. It allows fields that
are added later.
`

// manualJSON documents what is printed as JSON.
func manualJSON(t *testing.T, root *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(jsonHead)
	has := map[string]bool{}
	for _, p := range printed {
		section := p.section()
		if title := titles[section]; title != "" {
			fmt.Fprintf(&b, "\n## %s\n", title)
		} else if !has[section] {
			fmt.Fprintf(&b, "\n## hhfr %s\n", section)
		}
		has[section] = true
		if p.about == "" {
			continue
		}
		fmt.Fprintf(&b, "\n%s%s", strings.ToUpper(p.about[:1]), p.about[1:])
		if p.typ == nil {
			b.WriteString(".\n")
			continue
		}
		b.WriteString(":\n\n| field | |\n|---|---|\n")
		f := fieldTable{t: t, seen: map[reflect.Type]string{}, to: &b}
		f.of(p.typ, "")
	}
	for _, c := range cmdline.Below(root) {
		o := c.Flags().Lookup("output")
		for _, format := range []string{"json", "jsonl"} {
			if o == nil || !slices.Contains(strings.FieldsFunc(o.Usage, notWord), format) {
				continue
			}
			name := formName(c, format)
			if printsValues[name] {
				continue
			}
			assert.True(t, slices.ContainsFunc(printed, func(p printedForm) bool { return p.name == name }),
				"%s -o %s: say in `printed` of json_test.go what it prints", c.CommandPath(), format)
		}
	}
	return b.String()
}

func notWord(r rune) bool { return r == ' ' || r == ',' || r == ':' }

// formName is the name of what a command prints in a format. What reconstruct prints is that of
// decode.
func formName(c *cobra.Command, format string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "hhfr "), " ", "-")
	name = strings.Replace(name, "reconstruct", "decode", 1)
	if format == "jsonl" {
		name += "-jsonl"
	}
	return name
}

// fieldTable writes a table of fields. Fields below a shared comment share a row.
type fieldTable struct {
	t    *testing.T
	seen map[reflect.Type]string // where a type's fields are listed already
	to   *strings.Builder

	names   []string
	comment string
}

func (f *fieldTable) of(typ reflect.Type, prefix string) {
	f.t.Helper()
	for _, field := range fieldsOf(f.t, typ) {
		if !field.shares {
			f.flush()
		}
		f.comment = field.comment
		if field.optional {
			f.comment += " (optional)"
		}
		f.names = append(f.names, "`"+prefix+field.key+"`")
		inner, many := elementOf(field.typ)
		if inner.Kind() != reflect.Struct || isText(inner) || isValues(inner) {
			continue
		}
		if at := f.seen[inner]; at != "" {
			f.comment += ": as in `" + at + "`"
			continue
		}
		f.seen[inner] = prefix + field.key
		f.flush()
		f.of(inner, prefix+field.key+many+".")
	}
	f.flush()
}

func (f *fieldTable) flush() {
	if len(f.names) > 0 {
		fmt.Fprintf(f.to, "| %s | %s |\n", strings.Join(f.names, ", "), f.comment)
	}
	f.names, f.comment = nil, ""
}
