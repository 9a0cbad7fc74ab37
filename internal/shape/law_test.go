package shape_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
)

type segment struct {
	text   bool
	octets []byte
}

// split cuts a message that arrives in chunks of the given size (0: whole) into segments.
func split(t testing.TB, p *program.Program, message []byte, most, chunk int) (segments []segment) {
	t.Helper()
	var s program.Splitter
	s.Reset(p, most, false, func(text bool, seg []byte) error {
		require.LessOrEqual(t, len(seg), most)
		segments = append(segments, segment{text, bytes.Clone(seg)})
		return nil
	})
	if chunk == 0 {
		require.NoError(t, s.Split(message))
		return segments
	}
	for rest := message; len(rest) > 0; {
		n := min(chunk, len(rest))
		require.NoError(t, s.Write(rest[:n]))
		rest = rest[n:]
	}
	require.NoError(t, s.Close())
	return segments
}

func join(t testing.TB, p *program.Program, segments []segment) []byte {
	t.Helper()
	var j, pausing program.Joiner
	j.Reset(p)
	pausing.Reset(p)
	var out, inTurns []byte
	var err error
	for i, s := range segments {
		out, err = j.Join(out, s.octets, s.text, i == len(segments)-1)
		require.NoError(t, err, "segment %d of %d", i, len(segments))
		inTurns, err = joinInTurns(t, &pausing, inTurns, s, i == len(segments)-1, 1+i*i%500)
		require.NoError(t, err, "segment %d of %d, in turns", i, len(segments))
		require.True(t, bytes.Equal(out, inTurns), "segment %d of %d, in turns of %d", i, len(segments), 1+i*i%500)
	}
	return out
}

// joinInTurns joins a segment, most bytes at a time, and what the item at hand comes to.
func joinInTurns(t testing.TB, j *program.Joiner, dst []byte, s segment, last bool, most int) ([]byte, error) {
	t.Helper()
	out, more, err := j.JoinSome(dst, s.octets, s.text, last, most)
	for more && err == nil {
		before := len(out)
		out, more, err = j.JoinMore(out)
		require.LessOrEqual(t, len(out)-before, most+5*len(s.octets)+maxTexts, "in one turn")
	}
	return out, err
}

// maxTexts bounds what the shapes of tests have between two items, in UTF-16.
const maxTexts = 16 << 10

// requireLaw1 checks join(split(m)) == m in several segmentations, and reports whether the message
// fitted whole.
func requireLaw1(t testing.TB, p *program.Program, message []byte, what string) (fits bool, content int) {
	t.Helper()
	for _, way := range []struct{ most, chunk int }{{16384, 0}, {16384, 1000}, {4096, 100}, {256, 7}, {300, 1}} {
		if way.chunk == 1 && len(message) > 20000 {
			continue
		}
		segments := split(t, p, message, way.most, way.chunk)
		k := new(packed)
		k.message(t, p, segments, way.most)
		k.message(t, p, segments, way.most)
		got := join(t, p, segments)
		if !bytes.Equal(message, got) {
			n := 0
			for n < len(message) && n < len(got) && message[n] == got[n] {
				n++
			}
			t.Fatalf("%s: %v: %d octets became %d, first difference at %d: %.60q, not %.60q", what, way, len(message),
				len(got), n, got[n:], message[n:])
		}
		if way.chunk == 0 {
			fits = true
			for _, s := range segments {
				content += len(s.octets)
				fits = fits && !s.text
			}
		}
	}
	return fits, content
}

func TestLaw1OnTheCorpus(t *testing.T) {
	learned, raw := 0, map[string]int{}
	for _, path := range shared.Messages(t) {
		message := shared.Read(t, path)
		s, err := learn.FromMessage(message)
		if err != nil {
			var e *shape.Error
			require.True(t, errors.As(err, &e), "%s: %v", path, err)
			raw[e.What]++
			continue
		}
		again, err := shape.Parse(s.Octets())
		require.NoError(t, err, path)
		require.Equal(t, s.Fingerprint(), again.Fingerprint())
		fits, _ := requireLaw1(t, program.Compile(s), message, filepath.Base(path))
		assert.True(t, fits, "%s: the message does not fit the shape learned from it", path)
		learned++
	}
	t.Logf("%d messages learned; others: %v", learned, raw)
	assert.Greater(t, learned, 300)
}

// TestLaw1AcrossMessages splits every message of a family by the shapes of its neighbours: what
// does not fit goes on as text.
func TestLaw1AcrossMessages(t *testing.T) {
	paths := shared.Messages(t)
	var programs []*program.Program
	for _, path := range paths[:60] {
		if s, err := learn.FromMessage(shared.Read(t, path)); err == nil {
			programs = append(programs, program.Compile(s))
		}
	}
	require.NotEmpty(t, programs)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		path := paths[rnd.IntN(len(paths))]
		message := shared.Read(t, path)
		if len(message) < 100000 {
			requireLaw1(t, programs[rnd.IntN(len(programs))], message, path)
		}
	}
}

func TestArrayOf911Records(t *testing.T) {
	message := shared.Read(t, filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "jtlm"), "publish911.xml"))
	s, err := learn.FromMessage(message)
	require.NoError(t, err)
	var arrays []string
	var visit func(n *shape.Node, depth int)
	visit = func(n *shape.Node, depth int) {
		if n.Kind == shape.Array {
			arrays = append(arrays, fmt.Sprintf("%d", depth))
		}
		for _, k := range n.Kids {
			visit(k, depth+1)
		}
	}
	visit(s.Root(), 0)
	require.Len(t, arrays, 1, "the records are one array, at depths %s", strings.Join(arrays, ","))
	fits, content := requireLaw1(t, program.Compile(s), message, "publish911")
	assert.True(t, fits)
	t.Logf("%d octets, content %d", len(message), content)
	p100 := shared.Read(t, filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "jtlm"), "publish100.xml"))
	fits, content = requireLaw1(t, program.Compile(s), p100, "publish100")
	t.Log(fits, content)
}

// TestChoiceOfMany: an index takes as many bits as it needs, more than a byte too.
func TestChoiceOfMany(t *testing.T) {
	const n = 700
	kids := make([]*shape.Node, n)
	message := "<t>"
	for i := range kids {
		kids[i] = text(fmt.Sprintf("<c%d/>", i))
	}
	for i := 0; i < n; i += 37 {
		message += fmt.Sprintf("<r><c%d/></r>", i)
	}
	s, err := shape.New(seq(text("<t>"), array(0, 0, text("<r>"), choice(kids...), text("</r>")), text("</t>")))
	require.NoError(t, err)
	fits, content := requireLaw1(t, program.Compile(s), []byte(message+"</t>"), "choice")
	assert.True(t, fits)
	assert.Less(t, content, 3*n/37)
}

// TestChunksMakeNoDifference: what is settled at one look, and what is not since bytes are
// missing, gives the same content.
func TestChunksMakeNoDifference(t *testing.T) {
	messages := soapFiles(t)
	for _, c := range cases() {
		messages = append(messages, []byte(c.message))
	}
	for i, m := range messages {
		s, err := learn.FromMessage(m)
		if err != nil {
			continue
		}
		for _, other := range [][]byte{m, messages[(i+1)%len(messages)]} {
			whole := split(t, program.Compile(s), other, 16384, 0)
			if bytes.Equal(m, other) {
				require.Len(t, whole, 1+len(m)/(1<<20))
			}
			if len(whole) == 1 {
				require.Equal(t, whole, split(t, program.Compile(s), other, 16384, 1), "message %d", i)
			}
		}
	}
}
