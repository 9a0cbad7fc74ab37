package bench

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/report"
	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write golden files")

// onLink is a session on a link, whose time is off by a share.
func onLink(way bench.SessionWay, size, n int, ms, off, paper float64) bench.Cell {
	return bench.Cell{Service: "sum", Way: way, Size: size, N: n, Repeat: 1, Millis: ms, Expected: ms / (1 + off),
		Paper: paper}
}

// The tables of sessions on a link, of repeats to a peer, and of a run that was interrupted.
func TestSessionTables(t *testing.T) {
	link := []bench.Cell{
		onLink(bench.MetQueued, 5, 1, 1285.2, 0.01, 5440), onLink(bench.MetQueued, 5, 5, 1309, 0.01, 5790),
		onLink(bench.SOAPNew, 5, 1, 1399, 0.01, 3260), onLink(bench.SOAPNew, 5, 5, 7045, 0.2, 17620),
		onLink(bench.MetQueued, 60, 1, 99.94, 0, 0), onLink(bench.MetQueued, 60, 5, 1409, 0.01, 0),
		onLink(bench.SOAPNew, 60, 1, 9.5, 0.01, 0), onLink(bench.SOAPNew, 60, 5, 70450, 0.01, 0),
	}
	var peer []bench.Cell
	for i := range 6 {
		for _, n := range []int{1, 10} {
			peer = append(peer, bench.Cell{Service: bench.FileService, Way: bench.FirstCall, Size: 2, N: n,
				Repeat: i + 1, Millis: float64(100*n + i)})
		}
	}
	oaSet := bench.Overhead{Name: "Oa-set", Link: "14k4", Repeat: 1, Millis: 3231, Request: 1161, Sent: 1500,
		Received: 600, Paper: 4120, PaperReq: 1580}
	again := oaSet
	again.Repeat, again.Millis = 2, 3233
	for name, r := range map[string]*bench.Results{
		"link.text": {
			Cells: link, BreakEvens: append(bench.BreakEvens(link[:4]), bench.BreakEvens(link[4:])...),
			Overheads: []bench.Overhead{
				oaSet,
				{Name: "Oc", Link: "14k4", Repeat: 1, Millis: 30, Sent: 60, Received: 7, Compute: 0.018},
				again,
			},
			Models: []bench.Model{{Service: "sum", Size: 10, T1: 1092, T2New: 0.25, Setup: 5317, PaperT1: 250,
				PaperT2: 3780, PaperSetup: 9300, PaperBreakEven: 2.63}},
			Sweeps: []bench.Sweep{
				{Service: "sum", N: 1, Way: bench.Met, Against: bench.SOAPNew, P1: 2, P2: 1100, P3: 22.5, P4: 3,
					Crossing: 53.51},
				{Service: "concat", N: 2, Way: bench.Met, Against: bench.SOAPNew, P1: 2, P2: 1, P3: 1, P4: 3,
					Crossing: -1},
			},
		},
		"peer.text":        {Peer: "http://192.0.2.1:8080", Cells: peer},
		"interrupted.text": {Cells: link[:3]},
	} {
		var out bytes.Buffer
		require.NoError(t, report.Write(&out, "text", sessionTables(r)))
		path := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
		}
		require.Equal(t, string(shared.Read(t, path)), out.String(), "-update writes it")
	}
}
