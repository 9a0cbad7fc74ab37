package shape_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
	work "github.com/hhfr/hhfr/pkg/workload"
)

func soapFiles(tb testing.TB) (messages [][]byte) {
	for _, path := range shared.Files(tb, shared.Testdata(tb, "soap"),
		func(path string) bool { return filepath.Ext(path) == ".xml" }) {
		messages = append(messages, shared.Read(tb, path))
	}
	return messages
}

// FuzzSplit: law 1 for any two messages, both split by a shape learned from both, or from the first
// if they have too little in common.
func FuzzSplit(f *testing.F) {
	files := soapFiles(f)
	for i, m := range files {
		f.Add([]byte(wide(string(m), binary.LittleEndian)), []byte(wide(string(m), binary.BigEndian)+"\x00"), uint16(i))
		f.Add(m, files[(i+1)%len(files)], uint16(4096))
		f.Add(m, bytes.ReplaceAll(m, []byte("ns1"), []byte("q17")), uint16(300))
	}
	for _, c := range cases() {
		f.Add([]byte(c.message), []byte(c.message), uint16(256))
	}
	for _, c := range choices() {
		f.Add([]byte(c.messages[0]), []byte(c.messages[len(c.messages)-1]), uint16(256))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, most uint16) {
		s, err := learn.FromMessage(a)
		if err != nil {
			s, err = learn.FromHead(a)
		}
		if err != nil {
			var beginning *learn.Family
			if beginning, err = learn.NewFamily(a, false); err == nil {
				s, err = beginning.Shape()
			}
		}
		if err != nil {
			var e *shape.Error
			require.True(t, errors.As(err, &e), "%v", err)
			return
		}
		if one, err := learn.NewFamily(a, true); err == nil {
			if other, err := learn.NewFamily(b, true); err == nil {
				if wide := one.Widen(other); wide != nil {
					if both, err := wide.Shape(); err == nil {
						s = both
					}
				}
			}
		}
		p := program.Compile(s)
		for _, m := range [][]byte{a, b} {
			size := program.MinSegment + int(most)%16000
			segments := split(t, p, m, size, 0)
			require.True(t, bytes.Equal(m, join(t, p, segments)))
			k := new(packed)
			k.message(t, p, segments, size)
			k.message(t, p, segments, size)
			if len(m) < 10000 {
				require.True(t, bytes.Equal(m, join(t, p, split(t, p, m, size, 1+int(most)%50))))
			}
		}
	})
}

// FuzzJoin: content from a hostile peer makes an error or a message, in bounded work.
func FuzzJoin(f *testing.F) {
	for _, path := range shared.Files(f, shared.Testdata(f, "vectors", "content"), nil) {
		var v vector
		require.NoError(f, json.Unmarshal(shared.Read(f, path), &v))
		octets, err := hex.DecodeString(v.Shape)
		require.NoError(f, err)
		for i, seg := range v.Segments {
			content, err := hex.DecodeString(seg.Octets)
			require.NoError(f, err)
			f.Add(octets, content, []byte{}, i == len(v.Segments)-1, seg.Text)
			f.Add(octets, content, content, i == len(v.Segments)-1, false)
		}
	}
	f.Fuzz(func(t *testing.T, octets, first, second []byte, last, text bool) {
		s, err := shape.Parse(octets)
		if err != nil {
			require.True(t, errors.Is(err, &shape.Error{Code: shape.Invalid}) || errors.Is(err,
				&shape.Error{Code: shape.TooLarge}), "%v", err)
			return
		}
		require.True(t, bytes.Equal(octets, s.Octets()))
		again, err := shape.New(s.Root())
		require.NoError(t, err)
		require.Equal(t, s.Fingerprint(), again.Fingerprint(), "what is canonical stays as it is")
		var j program.Joiner
		j.Reset(program.Compile(s))
		out, err := j.Join(nil, first, false, false)
		if err == nil {
			before := len(out)
			out, err = j.Join(out, second, text, last)
			require.LessOrEqual(t, len(out)-before, 5<<20)
		}
		requireTurns(t, s, out, err, segment{octets: first}, segment{text, second}, last)
		if err != nil {
			require.True(t, errors.Is(err, &shape.Error{Code: shape.Malformed}) || errors.Is(err,
				&shape.Error{Code: shape.TooLarge}), "%v", err)
		}
	})
}

// requireTurns checks that content joined in turns comes to the same.
func requireTurns(t *testing.T, s *shape.Shape, want []byte, bad error, first, second segment, last bool) {
	t.Helper()
	var j program.Joiner
	j.Reset(program.Compile(s))
	var out []byte
	more, err := true, error(nil)
	for i, seg := range []segment{first, second} {
		for before := -1; err == nil && (before < 0 || more); before = len(out) {
			if before < 0 {
				out, more, err = j.JoinSome(out, seg.octets, seg.text, last && i == 1, 100)
			} else {
				out, more, err = j.JoinMore(out)
			}
		}
	}
	require.Equal(t, bad == nil, err == nil, "%v, in turns %v", bad, err)
	if err == nil {
		require.True(t, bytes.Equal(want, out))
	}
}

// TestEveryCutOfContentIsAnError: content without its end is never taken for a whole message.
func TestEveryCutOfContentIsAnError(t *testing.T) {
	for _, c := range cases() {
		s, err := shape.New(c.root)
		require.NoError(t, err)
		p := program.Compile(s)
		segments := split(t, p, []byte(c.message), 16384, 0)
		if len(segments) != 1 {
			continue
		}
		content := segments[0].octets
		for n := range content {
			var j program.Joiner
			j.Reset(p)
			out, err := j.Join(nil, content[:n], false, true)
			require.Error(t, err, "%s cut at %d of %d gives %q", c.name, n, len(content), out)
		}
		var j program.Joiner
		j.Reset(p)
		_, err = j.Join(nil, append(bytes.Clone(content), 0), false, true)
		require.Error(t, err, "%s with an octet more", c.name)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	messages := soapFiles(t)
	for _, all := range []iter.Seq[[]byte]{work.Strings(1, 8), work.Floats(1, 10), work.Records(1, 20)} {
		messages = slices.AppendSeq(messages, first(1, all))
	}
	for _, m := range messages {
		s, err := learn.FromMessage(m)
		if err != nil {
			continue
		}
		p := program.Compile(s)
		segments := split(t, p, m, 16384, 0)
		var sp program.Splitter
		var j program.Joiner
		var out []byte
		drop := func(bool, []byte) error { return nil }
		both := func() {
			sp.Reset(p, 16384, false, drop)
			if err := sp.Split(m); err != nil {
				t.Fatal(err)
			}
			j.Reset(p)
			out = out[:0]
			for i, seg := range segments {
				if out, err = j.Join(out, seg.octets, seg.text, i == len(segments)-1); err != nil {
					t.Fatal(err)
				}
			}
		}
		both()
		require.Zero(t, testing.AllocsPerRun(20, both))
		if len(segments) > 1 || segments[0].text {
			continue
		}
		var k columns.Packer
		var u columns.Unpacker
		var ours, theirs columns.Memory
		var at, there columns.Packing
		var packed []byte
		stages := func() {
			at.Reset()
			there.Reset()
			packed = k.Pack(packed[:0], p, &at, &ours, segments[0].octets, true, 16384)
			if out, err = u.Unpack(out[:0], p, &there, &theirs, packed, true, 16384); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 { // what is remembered settles
			stages()
		}
		require.Zero(t, testing.AllocsPerRun(20, stages))
	}
}
