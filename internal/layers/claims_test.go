package layers_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/papers"
	benchreport "github.com/hhfr/hhfr/internal/report"
)

// makers make what pages say of recorded runs. Files are named as from docs.
var makers = partMakers{
	"figures": func(...string) (string, error) { return tableOfLimits() },
	"size":    with(2, size),
	"table":   with(2, sessionsOrLoads),
	"sweep":   with(1, sweep),
	"lines":   with(1, lines),
	"fit":     with(1, fit),
	"clients": with(1, clients),
	"cell":    with(3, cell),
	"ratio":   with(4, ratios),
	"percent": with(2, percent),
	"calls":   with(1, calls),
	"picture": with(2, picture),
}

// TestClaims: what pages say between marks is what recorded runs say. Records of bench are
// described by cmd/hhfr, TestRecordFields.
func TestClaims(t *testing.T) {
	assert.Equal(t, []string{"records"}, remakePages(t, *update, makers), "parts that nobody makes")
}

// with is a maker that takes so many arguments.
func with(n int, of func(args []string) (string, error)) func(...string) (string, error) {
	return func(args ...string) (string, error) {
		if len(args) != n {
			return "", fmt.Errorf("%d arguments, %d are needed", len(args), n)
		}
		return of(args)
	}
}

func recorded(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(name)))
}

// rows reads a CSV file. Lines that begin with # say where it comes from.
func rows(name string) (head []string, list [][]string, err error) {
	text, err := recorded(name)
	if err != nil {
		return nil, nil, err
	}
	in := csv.NewReader(bytes.NewReader(text))
	in.Comment = '#'
	all, err := in.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if len(all) < 2 {
		return nil, nil, fmt.Errorf("%s has no rows", name)
	}
	return all[0], all[1:], nil
}

// grouped writes a whole number as the pages do.
func grouped(n string) string {
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + " " + n[i:]
	}
	return n
}

// lines is a file as a table. Its numbers stand at the right.
func lines(args []string) (string, error) {
	head, list, err := rows(args[0])
	if err != nil {
		return "", err
	}
	table, mark := "", ""
	for i, title := range head {
		table += "| " + title + " "
		mark += "|---"
		if number.MatchString(list[0][i]) {
			mark += ":"
		}
	}
	table += "|\n" + mark + "|\n"
	for _, r := range list {
		for _, cell := range r {
			if whole.MatchString(cell) {
				cell = grouped(cell)
			}
			table += "| " + cell + " "
		}
		table += "|\n"
	}
	return table, nil
}

var (
	whole  = regexp.MustCompile(`^\d+$`)
	number = regexp.MustCompile(`^[\d.]`)
)

// size is that of the binary for a system, in MB, or of all of them in a table.
func size(args []string) (string, error) {
	_, list, err := rows(args[0])
	if err != nil {
		return "", err
	}
	table := "| system | bytes |\n|---|---:|\n"
	for _, r := range list {
		if r[0] == args[1] {
			n, err := strconv.Atoi(r[1])
			return fmt.Sprintf("%.1f", float64(n)/1e6), err
		}
		table += fmt.Sprintf("| %s | %s |\n", r[0], grouped(r[1]))
	}
	if args[1] != "all" {
		return "", fmt.Errorf("no size of %s", args[1])
	}
	return table, nil
}

// sessionsOrLoads is a table of a file of bench, as hhfr bench report -o markdown has it: by the
// beginning of its title.
func sessionsOrLoads(args []string) (string, error) {
	text, err := recorded(args[0])
	if err != nil {
		return "", err
	}
	runs, err := benchreport.Read(args[0], bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	for _, s := range benchreport.Make(runs) {
		if s.Table != nil && strings.HasPrefix(s.Title, args[1]) {
			var out bytes.Buffer
			err := benchreport.Write(&out, "markdown", []benchreport.Section{{Title: s.Title, Table: s.Table}})
			_, table, _ := strings.Cut(out.String(), "\n\n")
			return table, err
		}
	}
	return "", fmt.Errorf("%s has no table %q", args[0], args[1])
}

// sweep is the lines closest to the sessions of one message over their sizes, by least squares, of
// each transport of hhfr beside plain SOAP: calculated here once more.
func sweep(args []string) (string, error) {
	text, err := recorded(args[0])
	if err != nil {
		return "", err
	}
	runs, err := benchreport.Read(args[0], bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	var order []string
	lines := map[string]*fitted{}
	for _, s := range runs[0].Sessions {
		if lines[s.Way] == nil {
			order, lines[s.Way] = append(order, s.Way), &fitted{}
		}
		lines[s.Way].add(s)
	}
	plain, ok := lines["soap-new"]
	if !ok {
		return "", fmt.Errorf("%s has no soap-new", args[0])
	}
	p3, p4 := plain.line()
	table := "| hhfr | p1, ms an item | p2, ms | p3 | p4 | items where they cross |\n|---|---:|---:|---:|---:|---:|\n"
	for _, way := range order {
		if way == "soap-new" {
			continue
		}
		p1, p2 := lines[way].line()
		table += fmt.Sprintf("| %s | %.2f | %.0f | %.2f | %.0f | %.0f |\n", way, p1, p2, p3, p4,
			max((p2-p4)/(p3-p1), 0))
	}
	return table, nil
}

// fitted are sums of points.
type fitted struct{ n, x, y, xx, xy float64 }

func (f *fitted) add(s experiment.SessionRow) {
	x := float64(s.Size)
	f.n, f.x, f.y, f.xx, f.xy = f.n+1, f.x+x, f.y+s.Millis, f.xx+x*x, f.xy+x*s.Millis
}

func (f *fitted) line() (slope, at0 float64) {
	slope = (f.n*f.xy - f.x*f.y) / (f.n*f.xx - f.x*f.x)
	return slope, (f.y - slope*f.x) / f.n
}

// fit is how far sessions are from those of the papers: of tables 2 to 5, and of first-call-queued
// beside tables 2 and 4.
func fit(args []string) (string, error) {
	text, err := recorded(args[0])
	if err != nil {
		return "", err
	}
	runs, err := benchreport.Read(args[0], bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	type cell struct {
		service, way string
		size, n      int
	}
	here, paper := map[cell]float64{}, map[cell]float64{}
	for _, s := range runs[0].Sessions {
		if s.Doubt == "" {
			here[cell{s.Service, s.Way, s.Size, s.N}] = s.Millis
		}
	}
	for _, s := range papers.Sessions() {
		ways := []string{"soap-new"}
		if s.HHFR {
			ways = []string{"explicit-queued", "first-call-queued"}
		}
		for _, way := range ways {
			paper[cell{s.Service, way, s.Size, s.N}] = s.Millis
		}
	}
	table := "| service | here | in the paper | cells | off, mean | off, most | a message more, of the paper's | " +
		"who is faster: as in the paper |\n|---|---|---|---:|---:|---:|---:|---:|\n"
	for _, service := range []string{"concat", "sum"} {
		for _, way := range []string{"explicit-queued", "first-call-queued", "soap-new"} {
			beside := "HHFR"
			if way == "soap-new" {
				beside = "SOAP"
			}
			var off, more []float64
			same, compared := 0, 0
			for c, ms := range paper {
				if here[c] == 0 || c.service != service || c.way != way {
					continue
				}
				off = append(off, 100*math.Abs(here[c]/ms-1))
				first := cell{service, way, c.size, 1}
				if c.n > 1 && here[first] > 0 {
					more = append(more, (here[c]-here[first])/(ms-paper[first]))
				}
				soap := cell{service, "soap-new", c.size, c.n}
				if way != "soap-new" && here[soap] > 0 {
					compared++
					if (here[c] < here[soap]) == (ms < paper[soap]) {
						same++
					}
				}
			}
			if len(off) == 0 {
				return "", fmt.Errorf("%s has no %s by %s", args[0], service, way)
			}
			order := ""
			if compared > 0 {
				order = fmt.Sprintf("%d of %d", same, compared)
			}
			mid, _, _ := experiment.Median(more)
			slices.Sort(off)
			sum := 0.0
			for _, x := range off {
				sum += x
			}
			table += fmt.Sprintf("| %s | %s | %s | %d | %.0f %% | %.0f %% | %.2f | %s |\n", service, way, beside,
				len(off), sum/float64(len(off)), off[len(off)-1], mid, order)
		}
	}
	return table, nil
}

// clients is the table of real clients: bytes, and what the pair takes of the tunnel with zlib.
func clients(args []string) (string, error) {
	_, list, err := rows(args[0])
	if err != nil {
		return "", err
	}
	table := "| conversation, calls | plain | zlib tunnel | zstd tunnel | pair | `--client-per-address` | " +
		"pair / zlib | the latter / zlib |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
	for _, r := range list {
		pair, err := part(r[4], r[2])
		if err != nil {
			return "", err
		}
		latter := ""
		if r[5] != "" {
			if latter, err = part(r[5], r[2]); err != nil {
				return "", err
			}
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n",
			r[0], grouped(r[1]), grouped(r[2]), grouped(r[3]), grouped(r[4]), grouped(r[5]), pair, latter)
	}
	return table, nil
}

// part is what a is of b.
func part(a, b string) (string, error) {
	x, err := strconv.ParseFloat(a, 64)
	if err != nil {
		return "", err
	}
	y, err := strconv.ParseFloat(b, 64)
	return fmt.Sprintf("%.2f", x/y), err
}

// cell is a number of a file: of the row that contains a text, in a column.
func cell(args []string) (string, error) {
	head, list, err := rows(args[0])
	column := slices.Index(head, args[2])
	if err != nil || column < 0 {
		return "", fmt.Errorf("no column %s: %w", args[2], err)
	}
	for _, r := range list {
		if strings.Contains(r[0], args[1]) {
			return grouped(r[column]), nil
		}
	}
	return "", fmt.Errorf("no row %s", args[1])
}

// ratios are those of two columns, from the least to the most, of the rows that contain a text.
func ratios(args []string) (string, error) {
	head, list, err := rows(args[0])
	a, b := slices.Index(head, args[2]), slices.Index(head, args[3])
	if err != nil || a < 0 || b < 0 {
		return "", fmt.Errorf("no columns %s and %s: %w", args[2], args[3], err)
	}
	var all []string
	for _, r := range list {
		if strings.Contains(r[0], args[1]) && r[a] != "" {
			ratio, err := part(r[a], r[b])
			if err != nil {
				return "", err
			}
			all = append(all, ratio)
		}
	}
	slices.Sort(all)
	switch all = slices.Compact(all); len(all) {
	case 0:
		return "", fmt.Errorf("no row %s", args[1])
	case 1:
		return all[0], nil
	}
	return all[0] + " to " + all[len(all)-1], nil
}

// percent is what a transport takes of the bytes of plain SOAP, in what hhfr estimate prints.
func percent(args []string) (string, error) {
	text, err := recorded(args[0])
	if err != nil {
		return "", err
	}
	of := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(args[1]) + ` +\d+ +([\d.]+)%`).FindSubmatch(text)
	if of == nil {
		return "", fmt.Errorf("%s has no %s", args[0], args[1])
	}
	x, err := strconv.ParseFloat(string(of[1]), 64)
	return fmt.Sprintf("%.0f", x), err
}

// calls is how many there are in what hhfr estimate prints.
func calls(args []string) (string, error) {
	text, err := recorded(args[0])
	if err != nil {
		return "", err
	}
	of := regexp.MustCompile(`(?m)^all +(\d+) `).FindSubmatch(text)
	if of == nil {
		return "", fmt.Errorf("%s does not say how many calls", args[0])
	}
	return string(of[1]), nil
}

// seconds is the time of the whole session by one transport, in what pictures/session.json has.
func seconds(args []string) (string, error) {
	text, err := recorded(args[0])
	if err != nil {
		return "", err
	}
	var run struct {
		Ways []struct {
			Way    string
			Millis []float64 `json:"ms"`
		}
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return "", err
	}
	for _, w := range run.Ways {
		if w.Way == args[1] {
			return fmt.Sprintf("%.1f", w.Millis[len(w.Millis)-1]/1000), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", args[0], args[1])
}

// picture is one, with what there is to see in it for those who do not.
func picture(args []string) (string, error) {
	about := ""
	switch args[1] {
	case "estimate":
		ours, err := percent([]string{args[0], "hhfr"})
		if err != nil {
			return "", err
		}
		tunnel, err := percent([]string{args[0], "tunnel, zlib"})
		if err != nil {
			return "", err
		}
		about = fmt.Sprintf("An estimate: %s %% of the bytes with hhfr, %s %% with a tunnel", ours, tunnel)
	case "session":
		plain, err := seconds([]string{args[0], "soap-new"})
		if err != nil {
			return "", err
		}
		ours, err := seconds([]string{args[0], "first-call"})
		if err != nil {
			return "", err
		}
		about = fmt.Sprintf("Ten calls over GPRS: %s s with plain SOAP, %s s with hhfr", plain, ours)
	default:
		return "", fmt.Errorf("no picture %s", args[1])
	}
	return fmt.Sprintf("![%s](docs/pictures/%s.svg)", about, args[1]), nil
}

// What is stale is found, and so are marks that nobody fills, and those that hide what they hold.
func TestRemake(t *testing.T) {
	by := partMakers{
		"a": func(args ...string) (string, error) { return strings.Join(args, "+"), nil },
		"b": func(...string) (string, error) { return "", os.ErrNotExist },
	}
	const hides = "a: a mark begins a line if and only if nothing else is on it"
	only, both := map[string]bool{"a": true}, map[string]bool{"a": true, "c": false}
	for _, tc := range []struct {
		page, want string
		has        map[string]bool
		err        string
	}{
		{"x <!-- made: a 1; 2 3 -->stale<!-- end --> y", "x <!-- made: a 1; 2 3 -->1+2 3<!-- end --> y", only, ""},
		{"<!-- made: a q -->\nstale\nmore\n<!-- end -->\n", "<!-- made: a q -->\nq\n<!-- end -->\n", only, ""},
		{"x\n<!-- made: a z -->\n<!-- end -->\nx <!-- made: c z -->y<!-- end -->",
			"x\n<!-- made: a z -->\nz\n<!-- end -->\nx <!-- made: c z -->y<!-- end -->", both, ""},
		{"x <!-- made: b -->1<!-- end -->", "", nil, "b : file does not exist"},
		{"  <!-- made: a -->1<!-- end -->", "", nil, hides},
		{"x <!-- made: a -->\n1\n<!-- end -->", "", nil, hides},
	} {
		got, has, err := remake(tc.page, by)
		if tc.err != "" {
			assert.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err, tc.page)
		assert.Equal(t, tc.want, got)
		assert.Equal(t, tc.has, has)
		again, _, err := remake(got, by)
		require.NoError(t, err)
		assert.Equal(t, got, again)
	}
}
