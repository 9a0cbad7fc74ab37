package shape_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
)

func workload(t testing.TB, name string) (messages [][]byte) {
	for _, path := range shared.Files(t, filepath.Join(shared.Dir(t, "workloads"), name), nil) {
		messages = append(messages, shared.Read(t, path))
	}
	return messages
}

// TestWorkloadsShareOneShape: the shape of the first message fits all of a folder.
func TestWorkloadsShareOneShape(t *testing.T) {
	for _, dir := range shared.Files(t, shared.Dir(t, "workloads"),
		func(p string) bool { return filepath.Base(p) == "0001.xml" }) {
		name := filepath.Base(filepath.Dir(dir))
		messages := workload(t, name)
		s, err := learn.FromMessage(messages[0])
		require.NoError(t, err)
		p := program.Compile(s)
		octets, content := 0, 0
		for i, m := range messages {
			fits, n := requireLaw1(t, p, m, name)
			assert.True(t, fits, "%s %d", name, i+1)
			octets, content = octets+len(m), content+n
		}
		t.Logf("%-14s %8.1f octets, content %8.1f", name, float64(octets)/float64(len(messages)),
			float64(content)/float64(len(messages)))
	}
}

func BenchmarkSplit(b *testing.B) {
	for _, name := range []string{"w1-8strings", "w2-10floats", "w2-1000floats", "w3-20records", "w3-500records",
		"w5-headers"} {
		b.Run(name, func(b *testing.B) {
			m := workload(b, name)
			s, err := learn.FromMessage(m[0])
			require.NoError(b, err)
			p := program.Compile(s)
			var sp program.Splitter
			drop := func(bool, []byte) error { return nil }
			b.ReportAllocs()
			b.SetBytes(int64(len(m[0])))
			for i := 0; b.Loop(); i++ {
				sp.Reset(p, 16384, false, drop)
				_ = sp.Split(m[i%len(m)])
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	for _, name := range []string{"w1-8strings", "w2-10floats", "w2-1000floats", "w3-20records", "w3-500records",
		"w5-headers"} {
		b.Run(name, func(b *testing.B) {
			m := workload(b, name)
			s, err := learn.FromMessage(m[0])
			require.NoError(b, err)
			p := program.Compile(s)
			segments := split(b, p, m[0], 16384, 0)
			var j program.Joiner
			var out []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(m[0])))
			for b.Loop() {
				j.Reset(p)
				out = out[:0]
				for i, s := range segments {
					out, _ = j.Join(out, s.octets, s.text, i == len(segments)-1)
				}
			}
		})
	}
}

// BenchmarkLearn is what the first message of a kind costs before it is split.
func BenchmarkLearn(b *testing.B) {
	for _, name := range []string{"w1-8strings", "w2-10floats", "w2-1000floats", "w3-20records", "w3-500records",
		"w5-headers"} {
		b.Run(name, func(b *testing.B) {
			m := workload(b, name)
			b.ReportAllocs()
			b.SetBytes(int64(len(m[0])))
			for i := 0; b.Loop(); i++ {
				s, err := learn.FromMessage(m[i%len(m)])
				require.NoError(b, err)
				program.Compile(s)
			}
		})
	}
}
