package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/compare/internal/ends"
	"github.com/hhfr/hhfr/compare/internal/real"
)

// results has all results of a run. Its JSON form has version 1.
type results struct {
	Version int            `json:"version"`
	Go      string         `json:"go"`
	System  string         `json:"system"`
	Inputs  string         `json:"inputs"`
	Bytes   []octetsRow    `json:"bytes,omitempty"`
	Stages  []stageSetsRow `json:"stages,omitempty"`
	Shapes  *transit       `json:"shapes,omitempty"`
	Speed   []speedRow     `json:"speed,omitempty"`
	// Described is the largest WSDL.
	Described *describedRow `json:"described,omitempty"`
	// Unlike are messages of the corpus, in several orders.
	Unlike []unlike `json:"unlike,omitempty"`
	// Strangers are messages of kinds that never repeat.
	Strangers *strangers `json:"strangers,omitempty"`
	// Flow is a reply in three flushed writes.
	Flow *flowRow `json:"flow,omitempty"`
	// Echo is a long text through proxies.
	Echo *echo `json:"echo,omitempty"`
	// Entry is the way in, by links.
	Entry []entryRow `json:"entry,omitempty"`
	// Conversations are calls through pairs at the pace of real ones.
	Conversations []conversationRow `json:"conversations,omitempty"`
	// Real are conversations of real clients and servers.
	Real *real.Report `json:"real,omitempty"`
	// Load are servers of other makes and ours under the same requests.
	Load []*loadRow `json:"load,omitempty"`
	// Calls are calls and one-way messages from end to end; Idle is how long nothing happened
	// before memory was read again.
	Calls []ends.Outcome `json:"calls,omitempty"`
	Idle  time.Duration  `json:"idle_ns,omitempty"`
	// Pairs are calls and long bodies through pairs of proxies.
	Pairs *pairs `json:"pairs,omitempty"`
	// Sessions are idle at a server.
	Sessions []ends.IdleRow `json:"sessions,omitempty"`
	// Captures are long captures, decoded and estimated.
	Captures *captures `json:"captures,omitempty"`
	// Resident is the memory of commands.
	Resident []ends.ResidentRow `json:"resident,omitempty"`
	Goals    []checkedGoal      `json:"goals"`
}

func newReport(in *inputs) *results {
	return &results{Version: 1, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Inputs: in.source}
}

// judge compares the measurements with the goals.
func (r *results) judge() {
	r.Goals = []checkedGoal{}
	for i := range goals {
		if v, measured := goals[i].judge(r); measured {
			r.Goals = append(r.Goals, v)
		}
	}
}

// missed counts the goals that make the run fail.
func (r *results) missed() (n int) {
	for _, v := range r.Goals {
		if !v.Met && !v.Open && v.Why == "" {
			n++
		}
	}
	return n
}

func (r *results) write(w io.Writer, output string) error {
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	p := &tablePrinter{w: w}
	p.printf("%s, %s, %s\n", r.Go, r.System, r.Inputs)
	r.writeBytes(p)
	r.writeStageSets(p)
	r.writeShapes(p)
	r.writeDescribed(p)
	r.writeSpeed(p)
	r.writeUnlike(p)
	r.writeStrangers(p)
	r.writeFlow(p)
	r.writeEcho(p)
	r.writeEntry(p)
	r.writeConversations(p)
	r.writeReal(p)
	r.writeLoad(p)
	r.writeCalls(p)
	r.writePairs(p)
	r.writeIdle(p)
	r.writeCaptures(p)
	r.writeResident(p)
	r.writeGoals(p)
	return p.err
}

func (r *results) writeBytes(p *tablePrinter) {
	if len(r.Bytes) == 0 {
		return
	}
	p.printf("\nBytes per message, mean. Streams keep their window and are flushed after each message. hhfr: " +
		"framing and sync in it, shapes apart (once per stream); also without stages, and with columns but " +
		"no memory.\n\n")
	t := cells{{"pkg/workload", "raw", "ideal", "protobuf", "gzip alone", "deflate", "zstd Go fastest", "zstd Go best",
		"zstd C 3", "zstd C 19", "no stages", "columns", "hhfr", "shapes", "hhfr / best zstd",
		"with shape / plain SOAP, largest"}}
	for _, o := range r.Bytes {
		t = append(t, []string{o.Workload, number(o.Raw), number(o.Ideal), number(o.Protobuf), number(o.Gzip),
			number(o.Deflate), number(o.ZstdFastest), number(o.ZstdBest),
			number(o.ZstdC3), number(o.ZstdC19), number(o.HHFRPlain), number(o.HHFRColumns), number(o.HHFR),
			number(float64(o.HHFRShapes)), ratio(o.Ratio), ratio(o.PlainMost)})
	}
	p.table(t)
	if r.Bytes[0].ZstdC19 == 0 {
		p.printf("\nThe C library of zstd needs cgo and a C compiler; without it, nothing is held against the best " +
			"zstd stream.\n")
	}
}

func (r *results) writeShapes(p *tablePrinter) {
	s := r.Shapes
	if s == nil {
		return
	}
	p.printf("\nLearned shapes in transit, all %d messages of the corpus in one stream; alone: each in a stream of "+
		"its own.\n\n", s.Messages)
	p.table(cells{
		{"learned from", "shape bytes", "gzip bytes", "total", "median", "largest", "alone, largest",
			"with message / plain SOAP, largest", "alone, largest"},
		{strconv.Itoa(s.Learned), strconv.FormatInt(s.ShapeTotal, 10),
			strconv.FormatInt(s.GzipTotal, 10), ratio(s.Total), ratio(s.Median), ratio(s.Most), ratio(s.AloneMost),
			ratio(s.PlainMost), ratio(s.AlonePlainMost)},
	})
}

func (r *results) writeSpeed(p *tablePrinter) {
	if len(r.Speed) == 0 {
		return
	}
	p.printf("\nMicroseconds of processor time per message, one core, medians: a message sent one way by " +
		"hhfr.Client to hhfr.Server, both ends and the system together, and parsers alone; ratios of the same " +
		"rounds, medians; allocations of both ends.\n\n")
	names := []string{sending, tokenizer, etreeParse, encodingXML, goBase64}
	t := cells{append(append([]string{"pkg/workload", "bytes"}, names...), "hhfr MB/s", "hhfr / tdewolff",
		"hhfr / etree",
		"hhfr / encoding/xml", "hhfr / base64", "allocations")}
	for _, s := range r.Speed {
		line := []string{s.Workload, strconv.FormatFloat(s.Octets, 'f', 0, 64)}
		for _, name := range names {
			line = append(line, micros(s.Nanos[name]))
		}
		t = append(t, append(line, number(1e3*s.Octets/s.Nanos[sending]), ratio(s.ToTokenizer), ratio(s.ToEtree),
			ratio(s.ToEncoding), ratio(s.ToBase64), strconv.FormatFloat(s.Allocs, 'f', 1, 64)))
	}
	p.table(t)
}

func (r *results) writeGoals(p *tablePrinter) {
	p.printf("\nGoals. Open ones belong to work that is not done yet; those that are missed and name a page cannot " +
		"be reached, and the page shows why.\n\n")
	t := cells{{"goal", "issue", "limit", "value", "state"}}
	for _, v := range r.Goals {
		sign, state := "≤ ", "missed"
		if v.AtLeast {
			sign = "≥ "
		}
		if v.Met {
			state = "met"
		}
		switch {
		case v.Open:
			state = "open, " + state
		case !v.Met && v.Why != "":
			state += ": " + v.Why
		}
		t = append(t, []string{v.Goal, strconv.Itoa(v.Issue), sign + strconv.FormatFloat(v.Limit, 'g', -1, 64),
			strconv.FormatFloat(v.Value, 'f', 2, 64), state})
	}
	p.table(t)
}

// number formats a figure of bytes or speed; 0 was not measured.
func number(v float64) string {
	if v == 0 {
		return "-"
	}
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func ratio(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func micros(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return strconv.FormatFloat(ns/1e3, 'f', 2, 64)
}

// tablePrinter remembers its first failure.
type tablePrinter struct {
	w   io.Writer
	err error
}

func (p *tablePrinter) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
