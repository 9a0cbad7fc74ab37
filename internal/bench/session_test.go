package bench_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/shared"
)

// paperWays are those of the papers' experiment, and SOAP on a kept connection.
var paperWays = []bench.SessionWay{bench.Explicit, bench.ExplicitQueued, bench.SOAPNew, bench.SOAPKept}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSession runs short sessions on a thin link. The exactness of its times is for the soak test,
// on a quiet machine.
func TestSession(t *testing.T) {
	heard := 0
	r, err := bench.Session(t.Context(),
		bench.SessionConfig{Ways: paperWays, Counts: []int{1, 3}, Sizes: []int{4, 10}, Link: "3g", Speed: 60,
			Each: func(bench.Cell) error {
				heard++
				return nil
			}})
	if err != nil {
		require.ErrorIs(t, err, bench.ErrNotTheLink)
	}
	require.Len(t, r.Cells, 2*2*4*2)
	assert.Equal(t, len(r.Cells), heard)
	bad := 0
	for _, c := range r.Cells {
		assert.Positive(t, c.Sent)
		assert.Positive(t, c.Received)
		assert.Positive(t, c.Expected)
		if c.Way != bench.ExplicitQueued { // its expected time is an estimate
			assert.GreaterOrEqual(t, c.Millis, c.Expected*0.98, "%+v", c)
		}
		if c.Good() {
			assert.InDelta(t, 0, c.Off(), bench.MaxOff)
			continue
		}
		bad++
		assert.Equal(t, 15.0, c.Speed, "twice at half the speed before")
	}
	assert.Equal(t, bad > 0, err != nil)
	assert.Equal(t, 5660.0, r.Cells[0].Paper)
	require.Len(t, r.Models, 4)
	assert.Equal(t, "concat", r.Models[0].Service)
	assert.InDelta(t, 2.69, r.Models[0].PaperBreakEven, 0.005)
	assert.Equal(t, "sum", r.Models[3].Service)
	assert.InDelta(t, 2.63, r.Models[3].PaperBreakEven, 0.005)
	for _, m := range r.Models {
		assert.Positive(t, m.Setup, "the rest are differences of times, and those are not exact on this clock")
	}
}

// Streams over datagrams that get lost: only those sessions run, and lost datagrams are sent again.
func TestSessionThatLoses(t *testing.T) {
	counts := []int{3, 10}
	r, err := bench.Session(t.Context(),
		bench.SessionConfig{Services: []string{"sum"}, Ways: paperWays, Counts: counts, Sizes: []int{10},
			Link: "3g,loss=5%,reorder=5%,seed=1", Transport: "udp", Speed: 20})
	if err != nil {
		require.ErrorIs(t, err, bench.ErrNotTheLink)
	}
	require.Len(t, r.Cells, 2*len(counts))
	for _, c := range r.Cells {
		assert.True(t, c.Lossy)
		assert.Contains(t, []bench.SessionWay{bench.Explicit, bench.ExplicitQueued}, c.Way)
		assert.Positive(t, c.Sent)
	}
	require.Len(t, r.Models, 1)
	assert.Zero(t, r.Models[0].T2New)
}

func TestSessionRefuses(t *testing.T) {
	for _, c := range []struct {
		cfg bench.SessionConfig
		why error
	}{
		{bench.SessionConfig{Link: "nonsense"}, &link.Error{Code: link.BadProfile}},
		{bench.SessionConfig{Link: "edge,loss=2%"}, &link.Error{Code: link.Unsupported}},
		{bench.SessionConfig{Link: "edge,loss=2%", Transport: "tcp"}, &link.Error{Code: link.Unsupported}},
		{bench.SessionConfig{Transport: "quic"}, bench.ErrConfig},
		{bench.SessionConfig{Services: []string{"blob"}}, bench.ErrConfig},
		{bench.SessionConfig{Sizes: []int{0}}, bench.ErrConfig},
		{bench.SessionConfig{Counts: []int{-1}}, bench.ErrConfig},
		{bench.SessionConfig{Sizes: []int{1_000_001}}, bench.ErrConfig},
		{bench.SessionConfig{Counts: []int{math.MaxInt}}, bench.ErrConfig},
		{bench.SessionConfig{Sizes: []int{1001}, Counts: []int{1, 1000}}, bench.ErrConfig},
		{bench.SessionConfig{Speed: -1}, bench.ErrConfig},
		{bench.SessionConfig{Speed: math.NaN()}, bench.ErrConfig},
	} {
		r, err := bench.Session(t.Context(), c.cfg)
		assert.ErrorIs(t, err, c.why)
		assert.Nil(t, r)
	}
}

// The results up to an interrupt are retained.
func TestSessionInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := bench.Session(ctx, bench.SessionConfig{Counts: []int{1}, Sizes: []int{4}, Speed: 100,
		Each: func(bench.Cell) error {
			cancel()
			return nil
		}})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Cells, 1)
	assert.Empty(t, r.Models)
}

// The papers' numbers are those of the tables handed down with the papers.
func TestPapers(t *testing.T) {
	dir := shared.Dir(t, "specs", "data")
	read := func(name string) (rows [][]string) {
		f, err := os.Open(filepath.Join(dir, name))
		require.NoError(t, err)
		defer f.Close()
		rows, err = csv.NewReader(f).ReadAll()
		require.NoError(t, err)
		require.Greater(t, len(rows), 1, name)
		return rows[1:]
	}
	for file, want := range map[string]struct {
		service string
		way     bench.SessionWay
	}{
		"hhfr-table2-string-hhfr-ms.csv": {"concat", bench.Explicit},
		"hhfr-table3-string-soap-ms.csv": {"concat", bench.SOAPNew},
		"hhfr-table4-float-hhfr-ms.csv":  {"sum", bench.Explicit},
		"hhfr-table5-float-soap-ms.csv":  {"sum", bench.SOAPNew},
	} {
		for _, row := range read(file) {
			var size, n int
			var ms float64
			_, err := fmt.Sscan(strings.Fields(row[2])[0]+" "+row[3]+" "+row[4], &size, &n, &ms)
			require.NoError(t, err, row)
			assert.Equal(t, ms, bench.Paper(want.service, want.way, size, n), "%s %v", file, row)
			assert.Zero(t, bench.Paper(want.service, bench.SOAPKept, size, n))
		}
	}
	model := map[string]float64{}
	for _, row := range read("hhfr-table6-overheads-and-model.csv") {
		n, err := strconv.ParseFloat(row[4], 64)
		require.NoError(t, err, row)
		model[row[1]+"|"+row[2]] = n
	}
	for section, is := range map[string][3]float64{"5.4 strings(4)|": bench.PaperCosts("concat", 4),
		"5.4 floats(10)|": bench.PaperCosts("sum", 10)} {
		want := [3]float64{model[section+"t1 ms"], model[section+"t2 ms"],
			model[section+"Oa ms"] + model[section+"Ob ms"]}
		assert.Positive(t, want[2])
		assert.Equal(t, want, is, section)
	}
}
