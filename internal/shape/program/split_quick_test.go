package program

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shared"
)

// segments are what a splitter handed out.
type segments []struct {
	text   bool
	octets string
}

func (s *segments) add(text bool, octets []byte) error {
	*s = append(*s, struct {
		text   bool
		octets string
	}{text, string(octets)})
	return nil
}

// splitByStep is Split without quick: each operation is looked at for itself.
func splitByStep(s *Splitter, message []byte) error {
	if s.p.Encoding().IsUTF16() {
		s.own = s.own[:0]
		s.narrowed(message, true)
		message = s.own
	}
	s.in, s.at, s.final = message, 0, true
	for s.out.err == nil {
		st := s.step()
		if st == next {
			continue
		}
		if st == mismatch || s.at < len(s.in) {
			return s.escape()
		}
		break
	}
	if s.out.err == nil {
		s.out.out()
	}
	return s.out.err
}

// FuzzSplitQuick: what is split at one look, and what is split step by step, is the same content in
// the same segments.
func FuzzSplitQuick(f *testing.F) {
	ofSOAP := func(path string) bool { return filepath.Ext(path) == ".xml" }
	rnd := rand.New(rand.NewPCG(1, 7))
	paths := shared.Files(f, shared.Testdata(f, "soap"), ofSOAP)
	for i, path := range paths {
		message := shared.Read(f, path)
		s, err := learn.FromMessage(message)
		if err != nil {
			continue
		}
		other := bytes.Clone(message)
		other[rnd.IntN(len(other))] ^= 4
		f.Add(s.Octets(), message, uint16(16000))
		f.Add(s.Octets(), message, uint16(i))
		f.Add(s.Octets(), other, uint16(100))
		f.Add(s.Octets(), shared.Read(f, paths[(i+1)%len(paths)]), uint16(100))
	}
	for _, path := range shared.Files(f, shared.Testdata(f, "vectors", "content"), nil) {
		var v struct{ Shape, Message string }
		require.NoError(f, json.Unmarshal(shared.Read(f, path), &v))
		octets, err := hex.DecodeString(v.Shape)
		require.NoError(f, err)
		message, err := hex.DecodeString(v.Message)
		require.NoError(f, err)
		for _, most := range []uint16{0, 44, 4096} {
			f.Add(octets, message, most)
			f.Add(octets, message[:len(message)/2], most)
		}
	}
	f.Fuzz(func(t *testing.T, octets, message []byte, most uint16) {
		s, err := shape.Parse(octets)
		if err != nil || len(message) > 1<<16 {
			return
		}
		requireQuickIsByStep(t, Compile(s), message, MinSegment+int(most))
	})
}

// requireQuickIsByStep gives how many segments the message has.
func requireQuickIsByStep(t *testing.T, p *Program, message []byte, most int) (n int) {
	t.Helper()
	for _, strict := range []bool{false, true} {
		var quick, steps Splitter
		var atOnce, byStep segments
		quick.Reset(p, most, strict, atOnce.add)
		steps.Reset(p, most, strict, byStep.add)
		require.Equal(t, quick.Split(message), splitByStep(&steps, message))
		require.Equal(t, len(byStep), len(atOnce))
		for i := range byStep {
			require.Equal(t, byStep[i], atOnce[i], "segment %d", i)
		}
		require.Equal(t, steps.Exceptions(), quick.Exceptions())
		n = len(atOnce)
	}
	return n
}

// A segment ends in time whatever stands for much of the message: values, rows, choices, optionals.
func TestSplitQuickOfLongMessages(t *testing.T) {
	text := strings.Repeat("some words ", 5000)
	const row = "<r><a>1</a><b>%[1]s</b></r><r><a>2</a><c/></r><r><a>3</a><b>%[1]s</b></r>"
	for _, message := range []string{
		"<t>" + strings.Repeat(fmt.Sprintf(row, text), 15) + "</t>",
		"<t>" + strings.Repeat(fmt.Sprintf("<x>%[1]s</x><y>7</y><x>%[1]s</x><z/>", text), 15) + "</t>",
		"<t>" + strings.Repeat("<r><a>1</a><d>2.5</d></r>", 50_000) + "</t>",
	} {
		s, err := learn.FromMessage([]byte(message))
		require.NoError(t, err)
		assert.Greater(t, requireQuickIsByStep(t, Compile(s), []byte(message), 4<<20), 1)
	}
}
