package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/report"
	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write golden files")

func read(t testing.TB, name string) []*report.Measurement {
	t.Helper()
	runs, err := report.Read(name, bytes.NewReader(shared.Read(t, filepath.Join("testdata", name))))
	require.NoError(t, err)
	return runs
}

// requireGolden compares with a file of testdata.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	require.Equal(t, string(shared.Read(t, path)), got, "go test ./internal/report -update writes it")
}

// A file with two runs, sessions that do not count, costs, loads with errors, and what was
// disturbed.
func TestReports(t *testing.T) {
	runs := read(t, "run.jsonl")
	require.Len(t, runs, 2)
	list := report.Make(runs)
	for _, format := range []string{"text", "markdown"} {
		var out bytes.Buffer
		require.NoError(t, report.Write(&out, format, list))
		requireGolden(t, "report."+format, out.String())
	}
	pictures, err := json.MarshalIndent(list, "", " ")
	require.NoError(t, err)
	requireGolden(t, "pictures.json", string(pictures))

	var out bytes.Buffer
	require.NoError(t, report.WriteCSV(&out, runs))
	requireGolden(t, "report.csv", out.String())
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Contains(t, rows, []string{"run.jsonl (run 1)", "sum(5), met, n = 1", "ms", "7", "1414"})
}

// What got faster is better, what is the same is neither, and fewer repeats than four tell nothing.
func TestComparisons(t *testing.T) {
	list, err := report.Compare(read(t, "run.jsonl")[:1], read(t, "later.jsonl"))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, report.Write(&out, "text", list))
	requireGolden(t, "compare.text", out.String())

	verdicts := map[string]string{}
	for _, row := range list[1].Table.Rows {
		verdicts[row[0]+", "+row[1]] = row[6]
	}
	assert.Equal(t, map[string]string{
		"sum(5), met, n = 1, ms": "better", "sum(5), met, n = 1, bytes": "",
		"sum(5), soap-new, n = 1, ms": "", "sum(5), soap-new, n = 1, bytes": "better",
	}, verdicts)

	_, err = report.Compare(read(t, "run.jsonl")[1:], read(t, "later.jsonl"))
	require.NoError(t, err, "another network is another machine, not another figure")
	none := read(t, "later.jsonl")
	none[0].Sessions = nil
	_, err = report.Compare(none, none)
	require.EqualError(t, err, "nothing was measured in both later.jsonl and later.jsonl")
}

// What records say stands in the page as data, and cannot end its script.
func TestPagesHoldWhatIsHostile(t *testing.T) {
	runs := read(t, "later.jsonl")
	const hostile = "</script><script>alert(1)</script><!--"
	runs[0].Name, runs[0].Environment.Machine.Model = hostile, hostile
	var out bytes.Buffer
	require.NoError(t, report.Write(&out, "html", report.Make(runs)))
	page := out.String()
	assert.False(t, strings.Contains(page, hostile))
	assert.Equal(t, 3, strings.Count(page, "</script>"))
	asks := regexp.MustCompile(`(src|href)=["']|url\(|@import|fetch\(|XMLHttp`)
	assert.Empty(t, asks.FindAllString(page, -1), "it needs nothing beside it")

	out.Reset()
	require.NoError(t, report.Write(&out, "markdown", report.Make(runs)))
	assert.NotContains(t, out.String(), "<script")
}

// Any file is refused, or has a report.
func FuzzReport(f *testing.F) {
	for _, name := range []string{"run.jsonl", "later.jsonl"} {
		all := shared.Read(f, filepath.Join("testdata", name))
		f.Add(all)
		for line := range bytes.Lines(all) {
			f.Add(append(bytes.SplitAfter(all, []byte("\n"))[0], line...))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		runs, err := report.Read("file", bytes.NewReader(file))
		if err != nil {
			return
		}
		for _, format := range []string{"text", "html", "markdown"} {
			require.NoError(t, report.Write(&bytes.Buffer{}, format, report.Make(runs)))
		}
		_, _ = report.Compare(runs, runs)
	})
}
