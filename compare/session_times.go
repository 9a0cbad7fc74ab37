package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// entryRow is the way in: sessions of ten echoed floats, from their first connection on, on one
// link, by `hhfr bench session`.
type entryRow struct {
	Link       string      `json:"link"`
	Cells      []cell      `json:"cells"`
	BreakEvens []breakEven `json:"break_evens"`
}

// cell is a session as the command reports it; times in milliseconds of the link.
type cell struct {
	Way      string  `json:"way"`
	N        int     `json:"n"` // messages
	Millis   float64 `json:"ms"`
	Expected float64 `json:"expected_ms"` // of its bytes and round trips
	Least    float64 `json:"least_ms"`    // of any session with these bytes
	Sent     int64   `json:"sent_octets"`
	Received int64   `json:"received_octets"`
}

// breakEven is the number of messages from which a way is as fast as another, against gzip within 1
// %; 0: at none of the lengths. Last is the ratio at the longest.
type breakEven struct {
	Way     string  `json:"way"`
	Against string  `json:"against"`
	N       int     `json:"n"`
	Last    float64 `json:"longest"`
}

// Ways that goals or break-evens name, as in the command line.
const (
	explicit        = "explicit"
	explicitQueued  = "explicit-queued"
	firstCall       = "first-call"
	firstCallTLS    = "first-call-tls"
	met             = "met"
	metQueued       = "met-queued"
	metTLS          = "met-tls"
	metTLSQueued    = "met-tls-queued"
	soapKept        = "soap-kept"
	httpsKept       = "https-kept"
	h2cQueued       = "h2c-queued"
	h2ResumedQueued = "h2-resumed-queued"
)

const (
	// notOff is how far a time may be from the expected one, as the command has it.
	notOff = 0.10
	// queuedRuns is how often queued sessions are run, and moreRuns how often again those in turn
	// that are off.
	queuedRuns, moreRuns = 3, 2
	// gzipMargin is the most by which a session is as fast as plain SOAP with gzip.
	gzipMargin = 1.01
)

// waysInTurn wait for each reply; queuedWays have all calls in flight at once.
var (
	waysInTurn = []string{
		explicit, firstCall, firstCallTLS, met, metTLS, "soap-new", soapKept, "soap-new-gzip", "soap-kept-gzip",
		"https-new", httpsKept, "https-new-gzip", "https-kept-gzip", "https-resumed-new", "https-resumed-kept",
		"https-resumed-new-gzip", "https-resumed-kept-gzip",
	}
	queuedWays = []string{explicitQueued, metQueued, metTLSQueued, h2cQueued, "h2-queued", h2ResumedQueued}
)

// entryCounts are the messages of sessions.
var entryCounts = []int{1, 2, 4, 8, 10, inFlight}

// inFlight are the messages of the longest sessions; queued ones have all in flight at once.
const inFlight = 100

// measureEntry runs sessions of all ways on the links, all links at a time: they hardly compute.
func measureEntry(ctx context.Context, links []string, counts []int) (list []entryRow, err error) {
	list = make([]entryRow, len(links))
	errs := make([]error, len(links))
	var all sync.WaitGroup
	for i, name := range links {
		all.Go(func() { list[i], errs[i] = enter(ctx, name, counts) })
	}
	all.Wait()
	return list, errors.Join(errs...)
}

// enter runs sessions on a link. Those in turn take their bytes and round trips: that time counts,
// unless the session is off by more than the command allows however often it is run. Of queued ones
// the fastest of some counts. So other work on the machine changes little.
func enter(ctx context.Context, link string, counts []int) (e entryRow, err error) {
	e.Link = link
	inTurn, err := sessionsOf(ctx, link, waysInTurn, counts)
	if err != nil {
		return e, err
	}
	for _, c := range inTurn {
		for range moreRuns {
			if !c.off() {
				break
			}
			again, err := sessionsOf(ctx, link, []string{c.Way}, []int{c.N})
			if err != nil {
				return e, err
			}
			c = again[0]
		}
		if !c.off() {
			c.Millis = c.Expected
		}
		e.Cells = append(e.Cells, c)
	}
	for run := range queuedRuns {
		queued, err := sessionsOf(ctx, link, queuedWays, counts)
		if err != nil {
			return e, err
		}
		if run == 0 {
			e.Cells = append(e.Cells, queued...)
		}
		for _, c := range queued {
			if known := e.find(c.Way, c.N); c.Millis < known.Millis {
				*known = c
			}
		}
	}
	e.addBreakEvens()
	return e, nil
}

// off reports that more than bytes and round trips went into the time.
func (c *cell) off() bool { return math.Abs(c.Millis-c.Expected) > notOff*c.Expected }

// sessionsOf has `hhfr bench session` run sessions.
func sessionsOf(ctx context.Context, link string, ways []string, counts []int) ([]cell, error) {
	var n []string
	for _, count := range counts {
		n = append(n, strconv.Itoa(count))
	}
	out, _, err := program.Run(ctx, nil, "bench", "session", "-q", "-o", "json", "--service", "echo", "--sizes", "10",
		"--link", link, "--ways", strings.Join(ways, ","), "--n", strings.Join(n, ","))
	if err != nil && len(out) == 0 {
		return nil, err // otherwise it says that times were not those of the link alone
	}
	var said struct{ Report struct{ Cells []cell } }
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, fmt.Errorf("hhfr bench session: %w", err)
	}
	if got := said.Report.Cells; len(got) == len(ways)*len(counts) {
		return got, nil
	}
	return nil, errors.Join(fmt.Errorf("hhfr bench session on %s ran %d sessions", link, len(said.Report.Cells)), err)
}

// addBreakEvens compares the ways of hhfr with those of plain SOAP on such connections.
func (e *entryRow) addBreakEvens() {
	for _, rivals := range []struct{ ways, against []string }{
		{[]string{explicit, firstCall, met}, []string{"soap-new", soapKept, "soap-new-gzip", "soap-kept-gzip"}},
		{[]string{firstCallTLS}, []string{"https-new", httpsKept, "https-new-gzip", "https-kept-gzip"}},
		{[]string{metTLS}, []string{"https-resumed-new", "https-resumed-kept", "https-resumed-new-gzip",
			"https-resumed-kept-gzip"}},
		{[]string{explicitQueued, metQueued}, []string{h2cQueued}},
		{[]string{metTLSQueued}, []string{h2ResumedQueued}},
	} {
		for _, way := range rivals.ways {
			for _, against := range rivals.against {
				e.BreakEvens = append(e.BreakEvens, e.breakEven(way, against))
			}
		}
	}
}

func (e *entryRow) breakEven(way, against string) breakEven {
	b := breakEven{Way: way, Against: against}
	limit := 1.0
	if strings.HasSuffix(against, "-gzip") {
		limit = gzipMargin
	}
	for _, n := range slices.Backward(entryCounts) {
		r, ok := toOther(way, against, n)(e)
		if !ok {
			continue
		}
		if b.Last == 0 {
			b.Last = r
		}
		if r > limit {
			break
		}
		b.N = n
	}
	return b
}

// find returns a session; nil: it was not measured.
func (e *entryRow) find(way string, n int) *cell {
	for i := range e.Cells {
		if c := &e.Cells[i]; c.Way == way && c.N == n {
			return c
		}
	}
	return nil
}

// cell is a session; ok: it was measured.
func (e *entryRow) cell(way string, n int) (c cell, ok bool) {
	if known := e.find(way, n); known != nil {
		return *known, true
	}
	return c, false
}

// figure is one of the sessions on a link; ok: they were measured.
type figure func(e *entryRow) (value float64, ok bool)

// toOther is the time of n messages one way, divided by that of another.
func toOther(way, other string, n int) figure {
	return func(e *entryRow) (float64, bool) {
		ours, ok := e.cell(way, n)
		theirs, both := e.cell(other, n)
		return ours.Millis / theirs.Millis, ok && both
	}
}

// toLeast is the time of all messages in flight, divided by that of their bytes and the least round
// trips.
func toLeast(way string) figure {
	return func(e *entryRow) (float64, bool) {
		c, ok := e.cell(way, inFlight)
		return c.Millis / c.Least, ok
	}
}

// breaksEven is the number of messages from which a way is as fast as each of plain SOAP; more than
// the largest count if it never is.
func breaksEven(way string) figure {
	return func(e *entryRow) (most float64, ok bool) {
		for _, b := range e.BreakEvens {
			if b.Way != way {
				continue
			}
			if ok = true; b.N == 0 {
				b.N = inFlight + 1
			}
			most = max(most, float64(b.N))
		}
		return most, ok
	}
}

// worstOf is the maximum of a figure on links; none: on all.
func worstOf(of figure, links ...string) func(*results) (float64, bool) {
	return func(r *results) (worst float64, measured bool) {
		for i := range r.Entry {
			if len(links) > 0 && !slices.Contains(links, r.Entry[i].Link) {
				continue
			}
			if value, ok := of(&r.Entry[i]); ok {
				worst, measured = max(worst, value), true
			}
		}
		return worst, measured
	}
}

func (r *results) writeEntry(p *tablePrinter) {
	if len(r.Entry) == 0 {
		return
	}
	p.printf("\nThe way in: sessions of w2-10floats, which come back as they are, in milliseconds of the link, by " +
		"`hhfr bench session`. New: a connection for each message; kept: one.\n")
	for i := range r.Entry {
		r.Entry[i].write(p)
	}
	p.printf("\nFrom how many messages on hhfr is as fast (against gzip: within 1 %%), and the time of %d to that of "+
		"plain SOAP. -: at none of these lengths.\n\n", inFlight)
	t := cells{{"way", "against"}}
	for i := range r.Entry {
		t[0] = append(t[0], r.Entry[i].Link, strconv.Itoa(inFlight))
	}
	for j, b := range r.Entry[0].BreakEvens {
		line := []string{b.Way, b.Against}
		for i := range r.Entry {
			b := r.Entry[i].BreakEvens[j]
			n := "-"
			if b.N > 0 {
				n = strconv.Itoa(b.N)
			}
			line = append(line, n, ratio(b.Last))
		}
		t = append(t, line)
	}
	p.table(t)
}

// write prints the sessions on one link. Least is that of the longest.
func (e *entryRow) write(p *tablePrinter) {
	p.printf("\n%s\n\n", e.Link)
	t := cells{{"way"}}
	for _, n := range entryCounts {
		t[0] = append(t[0], strconv.Itoa(n))
	}
	t[0] = append(t[0], "sent, 1", "received, 1", fmt.Sprintf("sent, %d", inFlight),
		fmt.Sprintf("received, %d", inFlight), fmt.Sprintf("%d / least", inFlight))
	for _, way := range slices.Concat(waysInTurn, queuedWays) {
		line := []string{way}
		for _, n := range entryCounts {
			c, _ := e.cell(way, n)
			line = append(line, strconv.FormatFloat(c.Millis, 'f', 1, 64))
		}
		for _, n := range []int{1, inFlight} {
			c, _ := e.cell(way, n)
			line = append(line, strconv.FormatInt(c.Sent, 10), strconv.FormatInt(c.Received, 10))
		}
		least, _ := toLeast(way)(e)
		t = append(t, append(line, ratio(least)))
	}
	p.table(t)
}
