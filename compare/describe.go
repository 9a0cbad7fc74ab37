package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/beevik/etree"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// describedRow is the largest WSDL of the corpus, read by etree and by `hhfr schema compile`. Times
// are processor times, the least of some rounds, in nanoseconds.
type describedRow struct {
	File       string `json:"file"`
	Octets     int    `json:"octets"`
	Operations int    `json:"operations"`
	// Etree is to parse it; Compile the whole process that compiles it and prints the names of all
	// messages.
	Etree   float64 `json:"etree_ns"`
	Compile float64 `json:"compile_ns"`
	// Resident is the most memory that this process had, in bytes.
	Resident float64 `json:"resident_octets"`
	// Alone is how many operations were compiled without the others, and Changed how many of their
	// messages had another fingerprint then.
	Alone   int `json:"alone"`
	Changed int `json:"changed"`
}

// operation is one of a description, and the fingerprints of its messages.
type operation struct {
	Name     string            `json:"name"`
	Messages map[string]string `json:"messages"`
}

// compileDescription has `hhfr schema compile` read a WSDL.
func compileDescription(ctx context.Context, file string) ([]operation, program.Used, error) {
	out, used, err := program.Run(ctx, nil, "schema", "compile", "-q", "-o", "json", file)
	if err != nil {
		return nil, used, err
	}
	var said struct{ Compiled []operation }
	return said.Compiled, used, json.Unmarshal(out, &said)
}

const describeRounds = 5

func measureDescribed(ctx context.Context, corpus string) (*describedRow, error) {
	file, err := largestWSDL(corpus)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	row := &describedRow{File: filepath.Base(file), Octets: len(text)}
	all, err := row.time(ctx, file, text)
	if err != nil {
		return nil, err
	}
	row.Operations = len(all)
	return row, row.compareAlone(ctx, file, text, all)
}

func largestWSDL(corpus string) (largest string, err error) {
	most := int64(-1)
	err = filepath.WalkDir(corpus, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".wsdl") {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > most {
			most, largest = info.Size(), path
		}
		return err
	})
	if err == nil && largest == "" {
		err = fmt.Errorf("no WSDL below %q", corpus)
	}
	return largest, err
}

// time takes turns, etree on one core, so that the share of the garbage collector is in it.
func (r *describedRow) time(ctx context.Context, file string, text []byte) (all []operation, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r.Etree, r.Compile = math.Inf(1), math.Inf(1)
	for range describeRounds {
		runtime.GC()
		began := cpuTime()
		if err := etree.NewDocument().ReadFromBytes(text); err != nil {
			return nil, err
		}
		r.Etree = min(r.Etree, float64(cpuTime()-began)/float64(time.Nanosecond))
		var used program.Used
		if all, used, err = compileDescription(ctx, file); err != nil {
			return nil, err
		}
		r.Compile = min(r.Compile, float64(used.Processor)/float64(time.Nanosecond))
		r.Resident = max(r.Resident, float64(used.Resident))
	}
	return all, ctx.Err()
}

// aloneOperations is how many are compiled alone.
const aloneOperations = 8

// compareAlone compiles some operations without all others, and compares their messages.
func (r *describedRow) compareAlone(ctx context.Context, file string, text []byte, all []operation) error {
	known := map[string]bool{}
	for _, o := range all {
		for _, fingerprint := range o.Messages {
			known[fingerprint] = true
		}
	}
	dir, err := os.MkdirTemp("", "compare-describe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range aloneOperations {
		name := all[i*len(all)/aloneOperations].Name
		one, err := onlyOperation(text, name)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(at, one, 0o600); err != nil {
			return err
		}
		alone, _, err := compileDescription(ctx, at)
		if err != nil {
			return err
		}
		r.Alone++
		if len(alone) == 0 {
			return fmt.Errorf("%s alone has no messages", name)
		}
		for _, o := range alone {
			for _, fingerprint := range o.Messages {
				if !known[fingerprint] {
					r.Changed++
				}
			}
		}
	}
	return nil
}

// onlyOperation is a WSDL with one operation.
func onlyOperation(text []byte, name string) ([]byte, error) {
	doc := etree.NewDocument()
	if err := doc.ReadFromBytes(text); err != nil {
		return nil, err
	}
	for _, path := range []string{"//portType/operation", "//binding/operation"} {
		for _, e := range doc.FindElements(path) {
			if e.SelectAttrValue("name", "") != name {
				e.Parent().RemoveChild(e)
			}
		}
	}
	var b bytes.Buffer
	_, err := doc.WriteTo(&b)
	return b.Bytes(), err
}

func (r *results) writeDescribed(p *tablePrinter) {
	d := r.Described
	if d == nil {
		return
	}
	p.printf("\nThe largest WSDL of the corpus: processor time in ms, the least of %d rounds, and memory in MB, of "+
		"etree and of the process `hhfr schema compile`. Operations compiled alone, and messages with another "+
		"fingerprint then.\n\n", describeRounds)
	ms := func(nanos float64) string { return number(nanos / 1e6) }
	p.table(cells{
		{"WSDL", "bytes", "operations", "etree", "compile", "compile / etree", "resident", "alone", "changed"},
		{d.File, number(float64(d.Octets)), strconv.Itoa(d.Operations), ms(d.Etree), ms(d.Compile),
			ratio(d.Compile / d.Etree), number(d.Resident / 1e6), strconv.Itoa(d.Alone), strconv.Itoa(d.Changed)},
	})
}

// describedGoals limit what a description of any size takes.
func describedGoals() []goal {
	of := func(figure func(*describedRow) float64) func(*results) (float64, bool) {
		return func(r *results) (float64, bool) {
			if r.Described == nil {
				return 0, false
			}
			return figure(r.Described), true
		}
	}
	return []goal{
		{17, "the largest WSDL, compiled and named, to etree", 4, false, of(func(d *describedRow) float64 {
			return d.Compile / d.Etree
		})},
		{17, "the largest WSDL, MB of a process that reads it", 200, false, of(func(d *describedRow) float64 {
			return d.Resident / 1e6
		})},
		{17, "the largest WSDL, messages whose name changes with its rest", 0, false, of(func(d *describedRow) float64 {
			return float64(d.Changed)
		})},
	}
}
