package shape_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	work "github.com/hhfr/hhfr/pkg/workload"
)

func TestBareTakesTheValues(t *testing.T) {
	const rows = `<a><input><item>%</item><item>-73.1283</item><item>1e-05</item></input></a>`
	for _, c := range []struct {
		name, like, message string
		numbers             []decimal
		uuids               int
		texts               string
	}{
		{"number", `<a>1</a>`, `<a>-12.50</a>`, []decimal{{-1250, 2}}, 0, ""},
		{"text", `<a>x</a>`, `<a>some words</a>`, nil, 0, "some words"},
		{"empty", `<a>x</a>`, `<a></a>`, nil, 0, ""},
		{"time", `<a>2006-06-11T04:26:40.318Z</a>`, `<a>2007-01-02T03:04:05.006Z</a>`,
			[]decimal{{20070102030405006, 0}}, 0, ""},
		{"uuid", `<a>urn:uuid:52fdfc07-2182-654f-163f-5f0f9a621d72</a>`,
			`<a>urn:uuid:9566c74d-1003-7c4d-7bbb-0407d1e2c649</a>`, nil, 16, ""},
		{"attributes are markup", `<a b="1"><c>2</c></a>`, `<a b="1"><c>3</c></a>`, []decimal{{3, 0}}, 0, ""},
		{"rows", `<a><input><item>1</item><item>2</item></input></a>`,
			`<a><input><item>-73.1283</item><item>1e-05</item><item>7</item></input></a>`,
			[]decimal{{-731283, 4}, {1, 0}, {7, 0}}, 0, "1e-05"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBare([]byte(c.like))
			require.NoError(t, b.run([]byte(c.message)))
			assert.Equal(t, len(c.numbers), len(b.numbers))
			assert.Subset(t, b.numbers, c.numbers)
			assert.Len(t, b.uuids, c.uuids)
			assert.Equal(t, c.texts, string(b.texts))
		})
	}
	b := newBare([]byte(rows))
	for n := range len(rows) {
		require.ErrorIs(t, b.run([]byte(rows[:n])), errBare, n)
	}
}

func TestBareKnowsTheWorkloads(t *testing.T) {
	for i, kind := range []iter.Seq[[]byte]{work.Strings(1, 4), work.Floats(1, 10), work.Records(1, 20),
		work.Headers(1)} {
		var b *bare
		for m := range first(5, kind) {
			if b == nil {
				b = newBare(m)
			}
			require.NoError(t, b.run(m), i)
		}
	}
	for m := range first(1, work.Headers(1)) {
		kinds := map[valueKind]int{}
		for _, p := range newBare(m).head {
			kinds[p.value]++
		}
		assert.Equal(t, map[valueKind]int{
			noValue: 1, uuidValue: 3, timeValue: 3, numberValue: 3, textValue: 7,
		}, kinds)
	}
}

// BenchmarkBare is what BenchmarkSplit is compared with.
func BenchmarkBare(b *testing.B) {
	for _, name := range []string{"w1-8strings", "w2-10floats", "w2-1000floats", "w3-20records", "w3-500records",
		"w5-headers"} {
		b.Run(name, func(b *testing.B) {
			m := workload(b, name)
			bare := newBare(m[0])
			b.ReportAllocs()
			b.SetBytes(int64(len(m[0])))
			for i := 0; b.Loop(); i++ {
				if err := bare.run(m[i%len(m)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
