package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// few are inputs that are measured quickly.
func few() *inputs {
	in := &inputs{source: "generated messages", workloads: map[string][][]byte{}}
	for _, f := range folders {
		in.workloads[f.name] = take(f.generate(), 4)
	}
	return in
}

func TestBytes(t *testing.T) {
	rows, err := measureBytes(t.Context(), few())
	require.NoError(t, err)
	require.Len(t, rows, len(folders))
	shapes := int64(0) // of the kinds that are not announced by texts
	for _, r := range rows {
		shapes += r.HHFRShapes
		assert.Equal(t, 4, r.Messages)
		assert.Less(t, r.Gzip, r.Raw, r.Workload)
		assert.Less(t, r.HHFR, r.Raw, r.Workload)
		assert.Positive(t, r.HHFR)
		for _, rival := range []float64{r.Deflate, r.ZstdFastest, r.ZstdBest} {
			assert.Positive(t, rival)
		}
		if r.ZstdC19 > 0 {
			assert.InDelta(t, r.HHFR/r.bestZstd(), r.Ratio, 1e-9)
		} else {
			assert.Zero(t, r.Ratio)
		}
	}
	assert.Positive(t, shapes)
}

func TestStageSets(t *testing.T) {
	rows, err := measureStageSets(t.Context(), few())
	require.NoError(t, err)
	require.Len(t, rows, len(folders))
	for _, r := range rows {
		require.Len(t, r.Octets, len(stageSets))
		for i, octets := range r.Octets {
			assert.Less(t, octets, r.Raw, "%s, %s", r.Messages, stageSets[i].name)
			assert.LessOrEqual(t, octets, r.Octets[0], "%s, %s: more than without stages", r.Messages,
				stageSets[i].name)
		}
	}
	value, measured := octetsBy("w1-8strings", "all")(&results{Stages: rows})
	assert.True(t, measured)
	assert.Positive(t, value)
	_, measured = octetsBy(corpusName, "all")(&results{Stages: rows})
	assert.False(t, measured)
}

// TestContest: every contestant can do its work on every message of every workload.
func TestContest(t *testing.T) {
	in := few()
	for _, f := range folders {
		c, err := newContest(t.Context(), f.name, in.workloads[f.name])
		require.NoError(t, err, f.name)
		for _, p := range c.contestants {
			for i := range c.messages {
				require.NoError(t, p.run(i), "%s, %s, message %d", f.name, p.name, i+1)
			}
			if p.settle != nil {
				require.NoError(t, p.settle(), f.name)
			}
		}
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{
		{"-only neither", exitUsage},
		{"-o hex", exitUsage},
		{"-rounds 0", exitUsage},
		{"-nonsense", exitUsage},
		{"rest", exitUsage},
		{"-help", exitDone},
		{"-only bytes -shared no-such-folder", exitFailed},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			assert.Equal(t, c.code, run(t.Context(), strings.Fields(c.args), &out, &errs))
			assert.Empty(t, out.String())
			assert.NotEmpty(t, errs.String())
		})
	}
}

// What cannot be reached is a goal, and the page that shows why exists.
func TestBeyondReach(t *testing.T) {
	var names []string
	for _, g := range goals {
		names = append(names, g.what)
	}
	assert.Len(t, beyondReach, 6)
	for what, why := range beyondReach {
		assert.Contains(t, names, what)
		page, section, _ := strings.Cut(why, ", ")
		text, err := os.ReadFile(filepath.Join("..", page))
		require.NoError(t, err)
		assert.Contains(t, string(text), "# "+section)
	}
}

func TestReport(t *testing.T) {
	r := newReport(few())
	r.Bytes = []octetsRow{{Workload: "w2-10floats", HHFR: 48, Ratio: 0.7}}
	r.Shapes = &transit{Total: 0.4, Median: 0.5, Most: 2}
	r.Speed = []speedRow{
		{Workload: "w5-headers", ToEtree: 0.51, Nanos: map[string]float64{sending: 1000}},
		{Workload: "w2-10floats", ToEtree: 0.5, Nanos: map[string]float64{sending: 1000}},
	}
	r.judge()
	assert.Equal(t, 3, r.missed())
	met := map[string]bool{}
	for _, v := range r.Goals {
		met[v.Goal] = v.Met
		assert.Equal(t, v.Issue == open, v.Open, v.Goal)
	}
	assert.True(t, met["w2-10floats, bytes per message"])
	assert.False(t, met["w2-10floats, bytes to the best zstd stream"])
	assert.True(t, met["learned shapes to gzip, median"])
	assert.False(t, met["learned shapes to gzip, largest"])
	assert.True(t, met["w2-10floats, a message from end to end to etree's parse"])
	assert.False(t, met["w5-headers, a message from end to end to etree's parse"])
	assert.NotContains(t, met, "w3-20records, bytes to the best zstd stream", "not measured, not judged")

	r.Bytes[0].HHFR = 48.1
	r.judge()
	assert.Equal(t, 4, r.missed())

	var text, js bytes.Buffer
	require.NoError(t, r.write(&text, "text"))
	assert.Contains(t, text.String(), "| w2-10floats, bytes per message ")
	for _, line := range strings.Split(text.String(), "\n") {
		if strings.HasPrefix(line, "|") {
			assert.True(t, strings.HasSuffix(line, "|"), line)
		}
	}
	require.NoError(t, r.write(&js, "json"))
	var back results
	require.NoError(t, json.Unmarshal(js.Bytes(), &back))
	assert.Equal(t, *r, back)
}

// textOf is what a report prints that has more to tell than sizes and speeds.
func textOf(t *testing.T, more func(*results)) string {
	t.Helper()
	r := newReport(few())
	more(r)
	var text bytes.Buffer
	require.NoError(t, r.write(&text, "text"))
	return text.String()
}

// Sessions of the command, of which those in turn take their bytes and round trips.
func TestEntry(t *testing.T) {
	list, err := measureEntry(t.Context(), []string{"3g"}, []int{1})
	require.NoError(t, err)
	require.Len(t, list, 1)
	e := &list[0]
	require.Len(t, e.Cells, len(waysInTurn)+len(queuedWays))
	for _, c := range e.Cells {
		assert.Positive(t, c.Sent, c.Way)
		assert.GreaterOrEqual(t, c.Millis, c.Least, c.Way)
	}
	one, ok := toOther(explicit, soapKept, 1)(e)
	assert.True(t, ok)
	assert.InDelta(t, 2.5, one, 0.25, "five round trips to two")
	never, ok := breaksEven(explicitQueued)(e)
	assert.True(t, ok)
	assert.InDelta(t, inFlight+1, never, 0)
	assert.Contains(t, textOf(t, func(r *results) { r.Entry = list }), "| https-resumed-kept-gzip ")

	_, err = measureEntry(t.Context(), []string{"pigeon"}, []int{1})
	assert.ErrorContains(t, err, "pigeon")
}

// A session that takes a round trip too many is off, and one on a busy machine is not.
func TestOff(t *testing.T) {
	assert.False(t, (&cell{Millis: 109, Expected: 100}).off())
	assert.False(t, (&cell{Millis: 91, Expected: 100}).off())
	assert.True(t, (&cell{Millis: 111, Expected: 100}).off())
}

// A break-even is the number of messages from which a way is as fast, and stays so.
func TestBreakEven(t *testing.T) {
	e := &entryRow{}
	for way, times := range map[string]map[int]float64{
		explicit:         {1: 100, 2: 100, 4: 130, 8: 140},
		"soap-new":       {1: 99, 2: 110, 4: 120, 8: 140, 10: 1},
		soapKept:         {1: 100, 8: 141},
		"soap-kept-gzip": {1: 98.9, 2: 99.1, 4: 129, 8: 139},
		"soap-new-gzip":  {8: 130},
	} {
		for n, ms := range times {
			e.Cells = append(e.Cells, cell{Way: way, N: n, Millis: ms})
		}
	}
	for against, want := range map[string]breakEven{
		"soap-new":       {Way: explicit, Against: "soap-new", N: 8, Last: 1},
		soapKept:         {Way: explicit, Against: soapKept, N: 1, Last: 140. / 141},
		"soap-new-gzip":  {Way: explicit, Against: "soap-new-gzip", N: 0, Last: 140. / 130},
		"soap-kept-gzip": {Way: explicit, Against: "soap-kept-gzip", N: 2, Last: 140. / 139},
	} {
		assert.Equal(t, want, e.breakEven(explicit, against))
	}
}

// Each goal of the way in applies to the worst link that it names.
func TestEntryGoals(t *testing.T) {
	r := newReport(few())
	r.Entry = entryOf("14k4", "wifi")
	missed := func() (list []string) {
		r.judge()
		for _, v := range r.Goals {
			if !v.Met {
				list = append(list, v.Goal)
			}
		}
		return list
	}
	assert.Empty(t, missed())
	assert.Len(t, r.Goals, 12)
	set := func(link int, way string, n int, ms float64) {
		for i := range r.Entry[link].Cells {
			if c := &r.Entry[link].Cells[i]; c.Way == way && c.N == n {
				c.Millis = ms
			}
		}
	}
	set(0, metQueued, inFlight, 60)
	set(1, metTLSQueued, inFlight, 60)
	set(1, firstCall, 1, 106)
	r.Entry[1].BreakEvens = []breakEven{{Way: met, N: 2}, {Way: firstCall, N: 2}, {Way: metTLS}}
	assert.Equal(t, []string{
		"first call of peers that did not meet, to plain SOAP",
		"break-even of peers that met, messages",
		"break-even of peers that met, in TLS, messages",
		"100 calls in flight of peers that met, to HTTP/2, thin links",
		"100 calls in flight of peers that met, to bytes and least round trips",
		"100 calls in flight of peers that met, in TLS, to bytes and least round trips",
	}, missed())
}

// entryOf creates sessions that meet all goals.
func entryOf(links ...string) (list []entryRow) {
	for _, l := range links {
		e := entryRow{Link: l}
		for way, ms := range map[string]float64{
			firstCall: 100, firstCallTLS: 100, metQueued: 50, metTLSQueued: 50,
			soapKept: 100, httpsKept: 100, h2cQueued: 100, h2ResumedQueued: 100,
		} {
			for _, n := range entryCounts {
				e.Cells = append(e.Cells, cell{Way: way, N: n, Millis: ms, Least: 50})
			}
		}
		for _, way := range []string{met, metTLS, firstCall, firstCallTLS} {
			e.BreakEvens = append(e.BreakEvens, breakEven{Way: way, N: 1})
		}
		list = append(list, e)
	}
	return list
}

func TestFlow(t *testing.T) {
	f, err := measureFlow(t.Context())
	require.NoError(t, err)
	assert.Positive(t, f.HHFR)
	assert.Positive(t, f.Plain)
	assert.Less(t, f.HHFROctets, f.PlainOctets)
	assert.Contains(t, textOf(t, func(r *results) { r.Flow = f }), "three flushed writes")
}

func TestEcho(t *testing.T) {
	e, err := measureEcho(t.Context(), 1<<20, 1)
	require.NoError(t, err)
	assert.Positive(t, e.One)
	assert.Positive(t, e.Pair)
	assert.Contains(t, textOf(t, func(r *results) { r.Echo = e }), "through one proxy and through a pair")
}

func TestStrangers(t *testing.T) {
	s, err := measureStrangers(t.Context(), 1, 50)
	require.NoError(t, err)
	assert.Positive(t, s.Plain)
	assert.Positive(t, s.HHFR)
	assert.Contains(t, textOf(t, func(r *results) { r.Strangers = s }), "messages of never-repeating kinds")
	_, err = streamed([]byte(`{"summary":{"messages":50,"failed":1}}`), 50)
	assert.Error(t, err)
}

func TestUnlike(t *testing.T) {
	rows := []unlike{{Order: "by path", HHFR: 600, ZstdC19: 800, Ratio: 0.75}, {Ratio: 0.875},
		(unlike{Order: eachAlone, HHFR: 1800, ZstdC19: 2000}).mean(4)}
	assert.Contains(t, textOf(t, func(r *results) { r.Unlike = rows }), "once each on one lane")
	worst, measured := worstUnlike(&results{Unlike: rows})
	assert.True(t, measured)
	assert.InDelta(t, 0.875, worst, 0)
	_, measured = worstUnlike(&results{})
	assert.False(t, measured)
	assert.Equal(t, unlike{Order: eachAlone, HHFR: 450, ZstdC19: 500, Ratio: 0.9}, rows[2])
	ratio, measured := alone(&results{Unlike: rows})
	assert.True(t, measured)
	assert.InDelta(t, 0.9, ratio, 0)
	_, measured = alone(&results{Unlike: rows[:2]})
	assert.False(t, measured)
}

func TestMedian(t *testing.T) {
	assert.InDelta(t, 2.0, median([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}

// TestGoalsAreOfKnownWorkloads: a goal on a misspelled workload would never be judged.
func TestGoalsAreOfKnownWorkloads(t *testing.T) {
	names := []string{blobName}
	for _, f := range folders {
		names = append(names, f.name)
	}
	for _, g := range apart { // those of processes are judged by their own tests
		if workload, _, ok := strings.Cut(g.what, ","); ok && strings.HasPrefix(workload, "w") {
			assert.Contains(t, names, workload)
		}
		all := &results{
			Shapes:    &transit{},
			Strangers: &strangers{},
			Flow:      &flowRow{},
			Echo:      &echo{},
			Unlike:    []unlike{{Ratio: 1}, {Order: eachAlone, Ratio: 1}},
			Entry:     entryOf(append(thin, fast...)...),
		}
		for _, name := range names {
			all.Bytes, all.Speed = append(all.Bytes, octetsRow{Workload: name, HHFR: 1, Ratio: 1}),
				append(all.Speed, speedRow{Workload: name})
		}
		for _, name := range records {
			all.Stages = append(all.Stages, stageSetsRow{Messages: name, Octets: make([]float64, len(stageSets))})
		}
		_, measured := g.judge(all)
		assert.True(t, measured, g.what)
	}
}
