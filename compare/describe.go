package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beevik/etree"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// describeArg, with a file behind it, makes this program read that description and say what memory
// it took.
const describeArg = "describe"

// describedRow is the largest WSDL of the corpus, read by both. Times are processor times, the
// least of some rounds, in nanoseconds.
type describedRow struct {
	File       string `json:"file"`
	Octets     int    `json:"octets"`
	Operations int    `json:"operations"`
	// Etree is to parse it; Compile to compile it; Named also to make all own shapes and the
	// fingerprint, as a command does that is given it.
	Etree   float64 `json:"etree_ns"`
	Compile float64 `json:"compile_ns"`
	Named   float64 `json:"named_ns"`
	// Resident is the most memory that a process has which reads it, in bytes.
	Resident float64 `json:"resident_octets"`
	// Alone is how many operations were compiled without the others, and Changed how many of their
	// own shapes were others then.
	Alone   int `json:"alone"`
	Changed int `json:"changed"`
}

// readDescription compiles a WSDL, and names its messages.
func readDescription(ctx context.Context, file string) (*typed.Contract, error) {
	d, err := wsdl.Load(ctx, file, wsdl.SourceOptions{})
	if err != nil {
		return nil, err
	}
	c := typed.New(d)
	_ = c.URI()
	return c, nil
}

func runDescribe(ctx context.Context, args []string, _ io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New(describeArg + " FILE")
	}
	c, err := readDescription(ctx, args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, residentPeak())
	runtime.KeepAlive(c)
	return err
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
	d, err := wsdl.Load(ctx, file, wsdl.SourceOptions{})
	if err != nil {
		return nil, err
	}
	row := &describedRow{File: filepath.Base(file), Octets: len(text), Operations: len(d.Operations)}
	if err := row.time(ctx, file, text); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	said, err := exec.CommandContext(ctx, self, describeArg, file).Output()
	if err != nil {
		return nil, err
	}
	if row.Resident, err = strconv.ParseFloat(strings.TrimSpace(string(said)), 64); err != nil {
		return nil, err
	}
	return row, row.compareAlone(ctx, file, text, d)
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

// time measures on one core, so that the share of the garbage collector is in it.
func (r *describedRow) time(ctx context.Context, file string, text []byte) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	works := []struct {
		least *float64
		do    func() error
	}{
		{&r.Etree, func() error { return etree.NewDocument().ReadFromBytes(text) }},
		{&r.Compile, func() error { _, err := wsdl.Load(ctx, file, wsdl.SourceOptions{}); return err }},
		{&r.Named, func() error { _, err := readDescription(ctx, file); return err }},
	}
	for i := range works {
		*works[i].least = math.Inf(1)
	}
	for range describeRounds {
		for i := range works {
			runtime.GC()
			began := cpuTime()
			if err := works[i].do(); err != nil {
				return err
			}
			*works[i].least = min(*works[i].least, float64(cpuTime()-began)/float64(time.Nanosecond))
		}
	}
	return ctx.Err()
}

// aloneOperations is how many are compiled alone.
const aloneOperations = 8

// compareAlone compiles some operations without all others, and compares their own shapes.
func (r *describedRow) compareAlone(
	ctx context.Context, file string, text []byte, d *wsdl.ServiceDescription,
) error {
	all := map[shape.Fingerprint]bool{}
	for s := range typed.New(d).OwnShapes() {
		if s != nil {
			all[s.Fingerprint()] = true
		}
	}
	dir, err := os.MkdirTemp("", "compare-describe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range aloneOperations {
		name := d.Operations[i*len(d.Operations)/aloneOperations].Name
		one, err := onlyOperation(text, name)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(at, one, 0o600); err != nil {
			return err
		}
		alone, err := readDescription(ctx, at)
		if err != nil {
			return err
		}
		r.Alone++
		shapes := slices.Collect(alone.OwnShapes())
		if len(shapes) == 0 {
			return fmt.Errorf("%s alone has no messages", name)
		}
		for _, s := range shapes {
			if s == nil || !all[s.Fingerprint()] {
				r.Changed++
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
	p.printf("\nThe largest WSDL of the corpus: processor time in ms, the least of %d rounds, and memory in MB. "+
		"named: compiled, with the fingerprint and all own shapes. Operations compiled alone, and own shapes that "+
		"differ then.\n\n", describeRounds)
	ms := func(nanos float64) string { return number(nanos / 1e6) }
	p.table(cells{
		{"WSDL", "bytes", "operations", "etree", "compiled", "named", "compiled / etree", "named / etree", "resident",
			"alone", "changed"},
		{d.File, number(float64(d.Octets)), strconv.Itoa(d.Operations), ms(d.Etree), ms(d.Compile), ms(d.Named),
			ratio(d.Compile / d.Etree), ratio(d.Named / d.Etree), number(d.Resident / 1e6), strconv.Itoa(d.Alone),
			strconv.Itoa(d.Changed)},
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
			return d.Named / d.Etree
		})},
		{17, "the largest WSDL, MB of a process that reads it", 200, false, of(func(d *describedRow) float64 {
			return d.Resident / 1e6
		})},
		{17, "the largest WSDL, own shapes that change with its rest", 0, false, of(func(d *describedRow) float64 {
			return float64(d.Changed)
		})},
	}
}
