package program

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/learn"
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
		p := Compile(s)
		for _, strict := range []bool{false, true} {
			var quick, steps Splitter
			var atOnce, byStep segments
			quick.Reset(p, MinSegment+int(most), strict, atOnce.add)
			steps.Reset(p, MinSegment+int(most), strict, byStep.add)
			require.Equal(t, quick.Split(message), splitByStep(&steps, message))
			require.Equal(t, byStep, atOnce)
			require.Equal(t, steps.Exceptions(), quick.Exceptions())
		}
	})
}
