//go:build soak

package shape_test

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/pkg/clock"
	work "github.com/hhfr/hhfr/pkg/workload"
)

const soakSegment = 16 << 10

// contender does one kind of work on message i.
type contender func(i int)

// TestSoakSpeedOfSplitAndJoin: split is within bounds of a bare loop that knows the markup, many
// times as fast as a parser, join not slower than split, and packing adds at most half. Ratios are
// medians of those of single rounds, in processor time on one core: noise of the machine hits the
// works of a round alike.
func TestSoakSpeedOfSplitAndJoin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const none = 0
	for _, c := range []struct {
		name             string
		toBare, toParser float64 // most of split
		toJoin, toLearn  float64 // most of join to split, of an unknown kind to a parser
		packs            float64 // most of split and pack to split, of unpack and join to join
	}{
		{"w2-10floats", none, 1. / 15, 1, 1.37, 1.5},
		{"w2-1000floats", 1.6, 1. / 15, 1, 1.37, 1.5},
		{"w3-500records", 2.5, 1. / 15, 1, 1.37, 1.5},
		{"w5-headers", 2.5, 1. / 15, 1, 1.37, 1.5},
		{"w3-20records", none, none, none, none, 1.5},
		{"w3-100records", none, none, none, none, 1.5},
		{"w2-100floats", none, none, none, none, 1.5},
		{"w4-base64", 2, none, none, none, 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			messages := [][]byte{work.Blob(1, 1<<20)}
			if c.name != "w4-base64" {
				messages = workload(t, c.name)
			}
			works := worksOf(t, messages)
			var missed []string
			for range 3 { // other work on the machine may interfere
				missed = nil
				ratio := rivals(works, len(messages))
				within := func(most float64, what, other string, more float64) {
					if most == none {
						return
					}
					said := fmt.Sprintf("%s to %s: %.3f, at most %.3f", what, other, more+ratio(what, other), most)
					t.Log(said)
					if more+ratio(what, other) > most {
						missed = append(missed, said)
					}
				}
				within(c.toBare, "split", "bare", 0)
				within(c.toParser, "split", "encoding/xml", 0)
				within(c.toJoin, "join", "split", 0)
				within(c.toLearn, "learn", "encoding/xml", 0)
				within(c.packs, "pack", "split", 1)
				within(c.packs, "unpack", "join", 1)
				if c.name == "w4-base64" {
					within(2, "join", "bare join", 0)
				}
				if len(missed) == 0 {
					break
				}
			}
			assert.Empty(t, missed)
		})
	}
}

// rivals lets the works take turns, and returns the ratio of two of them.
func rivals(works map[string]contender, messages int) (ratio func(one, other string) float64) {
	const rounds, slice = 21, 5 * time.Millisecond
	took := map[string][]float64{}
	for range rounds {
		for name, do := range works {
			slice, garbage := slice, name == "learn" || name == "encoding/xml"
			if garbage {
				slice *= 4 // long enough for the collector to run in it
			}
			do(0)
			began, n := clock.Processor(), 0
			for clock.Processor()-began < slice {
				for range min(16, messages) {
					do(n % messages)
					n++
				}
			}
			took[name] = append(took[name], float64(clock.Processor()-began)/float64(n))
			if garbage {
				runtime.GC() // the next one must not collect its garbage
			}
		}
	}
	return func(one, other string) float64 {
		list := make([]float64, rounds)
		for i := range list {
			list[i] = took[one][i] / took[other][i]
		}
		slices.Sort(list)
		return list[rounds/2]
	}
}

// worksOf are those of one kind of message, with a shape that fits them all.
func worksOf(t *testing.T, messages [][]byte) map[string]contender {
	s, err := learn.FromMessage(messages[0])
	require.NoError(t, err)
	p := program.Compile(s)
	var sp program.Splitter
	var j program.Joiner
	var out []byte
	contents := make([][]segment, len(messages))
	for i, m := range messages {
		contents[i] = split(t, p, m, soakSegment, 0)
	}
	drop := func(bool, []byte) error { return nil }
	works := map[string]contender{
		"split": func(i int) {
			sp.Reset(p, soakSegment, true, drop)
			_ = sp.Split(messages[i]) // it was split before
		},
		"join": func(i int) {
			j.Reset(p)
			out = out[:0]
			for k, seg := range contents[i] {
				out, _ = j.Join(out, seg.octets, seg.text, k == len(contents[i])-1)
			}
		},
		"learn": func(i int) {
			s, _ := learn.FromMessage(messages[i])
			sp.Reset(program.Compile(s), soakSegment, true, drop)
			_ = sp.Split(messages[i])
		},
		"encoding/xml": func(i int) {
			d := xml.NewDecoder(bytes.NewReader(messages[i]))
			for {
				if _, err := d.RawToken(); errors.Is(err, io.EOF) {
					return
				}
			}
		},
	}
	addPacks(works, p, contents)
	addBare(works, messages)
	return works
}

// addPacks adds packing as a lane does it, and unpacking what was packed, in the same order.
func addPacks(works map[string]contender, p *program.Program, contents [][]segment) {
	const between = 64 << 10 // syncs, about, which empty the memories
	pack := func(k *columns.Packer, m *columns.Memory, at int, each func(packed []byte)) {
		var way columns.Packing
		for i, seg := range contents[at%len(contents)] {
			each(k.Pack(nil, p, &way, m, seg.octets, i == len(contents[at%len(contents)])-1, soakSegment))
		}
	}
	var list [][][]byte
	var k columns.Packer
	var m columns.Memory
	for octets := 0; octets < between || len(list) < len(contents); {
		var one [][]byte
		pack(&k, &m, len(list), func(packed []byte) { one, octets = append(one, packed), octets+len(packed) })
		list = append(list, one)
	}
	var ours, theirs columns.Memory
	var out, room []byte
	var way, back columns.Packing
	octets := 0
	works["pack"] = func(i int) {
		if octets > between {
			ours, octets = columns.Memory{}, 0
		}
		way.Reset()
		for n, seg := range contents[i] {
			room = k.Pack(room[:0], p, &way, &ours, seg.octets, n == len(contents[i])-1, soakSegment)
			octets += len(room)
		}
	}
	var u columns.Unpacker
	next := 0
	works["unpack"] = func(int) {
		if next == 0 {
			theirs.Reset()
		}
		back.Reset()
		for n, packed := range list[next] {
			out, _ = u.Unpack(out[:0], p, &back, &theirs, packed, n == len(list[next])-1, soakSegment)
		}
		next = (next + 1) % len(list)
	}
}

// addBare adds the bare loop, and for a payload Go's base64 in its place.
func addBare(works map[string]contender, messages [][]byte) {
	m := messages[0]
	if !bytes.Contains(m, []byte("echoBase64")) {
		b := newBare(m)
		works["bare"] = func(i int) { _ = b.run(messages[i]) }
		return
	}
	from := bytes.Index(m, []byte("<input>")) + len("<input>")
	text := m[from : from+bytes.IndexByte(m[from:], '<')]
	octets, back := make([]byte, base64.StdEncoding.DecodedLen(len(text))), make([]byte, len(text))
	n, _ := base64.StdEncoding.Decode(octets, text)
	works["bare"] = func(int) { _, _ = base64.StdEncoding.Decode(octets, text) }
	works["bare join"] = func(int) { base64.StdEncoding.Encode(back, octets[:n]) }
}
