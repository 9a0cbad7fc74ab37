package main

import "slices"

// open is an issue that is not done. Its goals are reported as open, and missing them is no
// failure.
const open = 16

// beyondReach are goals of built issues that cannot be reached, with the page that shows why. They
// are reported, and missing them is no failure.
var beyondReach = func() map[string]string {
	why := map[string]string{}
	why[leastWhat], why[leastTLSWhat] = "docs/benchmarks.md, Sessions from their first connection on",
		"docs/benchmarks.md, Sessions from their first connection on"
	why[echoWhat] = "docs/benchmarks.md, Long echoes through a pair"
	why[longWhat] = "docs/benchmarks.md, Calls and long bodies through a pair"
	why[loadWhat] = "docs/benchmarks.md, Servers under load"
	why[estimateWhat] = "docs/benchmarks.md, A gigabyte of capture"
	return why
}()

const (
	leastWhat    = "100 calls in flight of peers that met, to bytes and least round trips"
	leastTLSWhat = "100 calls in flight of peers that met, in TLS, to bytes and least round trips"

	echoWhat = "a long text given back while it is read, a pair to one proxy"

	longWhat = "pair, long bodies, speed to a stream alone, least"

	estimateWhat = "estimate of plain SOAP, processor seconds for a GB"

	loadWhat = "geoip in plain SOAP, answers for a CPU second to CXF's"
)

// thin are links on which bytes count most, fast the others.
var thin, fast = []string{"14k4", "gprs", "edge", "3g"}, []string{"lte", "geo", "wifi"}

// goal is a limit on a figure: a maximum, or with atLeast a minimum.
type goal struct {
	since   int // the issue that sets it
	what    string
	limit   float64
	atLeast bool
	figure  func(r *results) (value float64, measured bool)
}

var goals = slices.Concat(apart, callGoals(), pairGoals(), idleGoals(), captureGoals(), residentGoals(),
	describedGoals(), conversationGoals(), realGoals(), loadGoals())

// apart are the goals that name their workload.
var apart = []goal{
	{2, "w2-10floats, bytes per message", 48, false, octetsOf("w2-10floats", func(o *octetsRow) float64 {
		return o.HHFR
	})},
	{6, "w2-10floats, bytes to the best zstd stream", 0.65, false, octetsOf("w2-10floats", toBest)},
	{6, "w3-20records, bytes to the best zstd stream", 0.65, false, octetsOf("w3-20records", toBest)},
	{6, "w3-100records, bytes to the best zstd stream", 0.65, false, octetsOf("w3-100records", toBest)},
	{6, "w5-headers, bytes to the best zstd stream", 0.65, false, octetsOf("w5-headers", toBest)},
	{6, "w3-500records, bytes to the best zstd stream", 0.70, false, octetsOf("w3-500records", toBest)},
	{6, "w2-100floats, bytes to the best zstd stream", 0.85, false, octetsOf("w2-100floats", toBest)},
	{6, "w1-8strings, bytes to the best zstd stream", 1.0, false, octetsOf("w1-8strings", toBest)},

	{6, "JTLM publish100.xml, bytes with columns alone", 9511, false, octetsBy("publish100.xml", "columns")},
	{6, "JTLM publish911.xml, bytes with columns alone", 86000, false, octetsBy("publish911.xml", "columns")},
	{6, "JTLM publish100.xml, bytes with columns and zstd", 2047, false, octetsBy("publish100.xml", "columns, zstd")},
	{6, "JTLM publish911.xml, bytes with columns and zstd", 15000, false, octetsBy("publish911.xml", "columns, zstd")},

	{6, "learned shapes to gzip, in total", 0.45, false, transitOf(func(t *transit) float64 { return t.Total })},
	{6, "learned shapes to gzip, median", 0.50, false, transitOf(func(t *transit) float64 { return t.Median })},
	{6, "learned shapes to gzip, largest", 1.0, false, transitOf(func(t *transit) float64 { return t.Most })},
	{6, "learned shapes to gzip, each alone, largest", 1.0, false, transitOf(func(t *transit) float64 {
		return t.AloneMost
	})},
	{6, "any message with its shape to plain SOAP, largest", 1.0, false, overPlain},

	{5, "w2-10floats, a message from end to end to etree's parse", 0.5, false, speedOf("w2-10floats", toEtree)},
	{5, "w2-1000floats, a message from end to end to etree's parse", 0.5, false, speedOf("w2-1000floats", toEtree)},
	{5, "w3-500records, a message from end to end to etree's parse", 0.5, false, speedOf("w3-500records", toEtree)},
	{5, "w5-headers, a message from end to end to etree's parse", 0.5, false, speedOf("w5-headers", toEtree)},
	{5, "w4-base64, a message from end to end to Go's base64, both ways", 3, false,
		speedOf(blobName, func(s *speedRow) float64 { return s.ToBase64 })},
	{5, "never-repeating kinds, processor time to text", 1.3, false,
		strangersOf(func(s *strangers) float64 {
			return s.Ratio
		})},
	{5, "never-repeating kinds, bytes added to a message", 8, false, strangersOf(func(s *strangers) float64 {
		return s.Added
	})},

	{13, "messages unlike each other, bytes to a zstd stream of level 19, any order", 0.95, false, worstUnlike},
	{13, "a message alone, without hello, bytes to zstd of level 19", 0.78, false, alone},

	{12, "replies in three flushed writes, time of a call to plain HTTP", 2, false, flowOf(func(f *flowRow) float64 {
		return f.Ratio
	})},
	{12, "replies in three flushed writes, bytes to plain HTTP", 0.25, false, flowOf(func(f *flowRow) float64 {
		return f.HHFROctets / f.PlainOctets
	})},
	{12, echoWhat, 2, false, echoOf(func(e *echo) float64 { return e.Ratio })},

	{13, "first call of peers that did not meet, to plain SOAP", 1.05, false,
		worstOf(toOther(firstCall, soapKept, 1))},
	{13, "first call of peers that did not meet, in TLS, to plain SOAP", 1.05, false,
		worstOf(toOther(firstCallTLS, httpsKept, 1))},
	{13, "break-even of peers that did not meet, messages", 2, false, worstOf(breaksEven(firstCall))},
	{13, "break-even of peers that did not meet, in TLS, messages", 2, false, worstOf(breaksEven(firstCallTLS))},
	{13, "break-even of peers that met, messages", 1, false, worstOf(breaksEven(met))},
	{13, "break-even of peers that met, in TLS, messages", 1, false, worstOf(breaksEven(metTLS))},
	{13, "100 calls in flight of peers that met, to HTTP/2, thin links", 0.5, false,
		worstOf(toOther(metQueued, h2cQueued, inFlight), thin...)},
	{13, "100 calls in flight of peers that met, in TLS, to HTTP/2, thin links", 0.5, false,
		worstOf(toOther(metTLSQueued, h2ResumedQueued, inFlight), thin...)},
	{13, "100 calls in flight of peers that met, to HTTP/2, other links", 0.9, false,
		worstOf(toOther(metQueued, h2cQueued, inFlight), fast...)},
	{13, "100 calls in flight of peers that met, in TLS, to HTTP/2, other links", 0.9, false,
		worstOf(toOther(metTLSQueued, h2ResumedQueued, inFlight), fast...)},
	{13, leastWhat, 1.15, false, worstOf(toLeast(metQueued))},
	{13, leastTLSWhat, 1.15, false, worstOf(toLeast(metTLSQueued))},
}

// overPlain is the largest ratio of any message of corpus and workloads; without the corpus nothing
// is judged.
func overPlain(r *results) (most float64, measured bool) {
	if r.Shapes == nil {
		return 0, false
	}
	most = max(r.Shapes.PlainMost, r.Shapes.AlonePlainMost)
	for i := range r.Bytes {
		most = max(most, r.Bytes[i].PlainMost)
	}
	return most, true
}

func strangersOf(of func(*strangers) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Strangers == nil {
			return 0, false
		}
		return of(r.Strangers), true
	}
}

func toBest(o *octetsRow) float64 { return o.Ratio }
func toEtree(s *speedRow) float64 { return s.ToEtree }

func octetsOf(workload string, of func(*octetsRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		for i := range r.Bytes {
			if r.Bytes[i].Workload == workload {
				value := of(&r.Bytes[i])
				return value, value > 0
			}
		}
		return 0, false
	}
}

func speedOf(workload string, of func(*speedRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		for i := range r.Speed {
			if r.Speed[i].Workload == workload {
				return of(&r.Speed[i]), true
			}
		}
		return 0, false
	}
}

func transitOf(of func(*transit) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Shapes == nil {
			return 0, false
		}
		return of(r.Shapes), true
	}
}

// checkedGoal is a goal and what was measured.
type checkedGoal struct {
	Goal    string  `json:"goal"`
	Issue   int     `json:"since_issue"`
	Open    bool    `json:"open"`
	Why     string  `json:"why,omitempty"`
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least,omitempty"`
	Value   float64 `json:"value"`
	Met     bool    `json:"met"`
}

func (g *goal) judge(r *results) (v checkedGoal, measured bool) {
	value, measured := g.figure(r)
	met := value <= g.limit
	if g.atLeast {
		met = value >= g.limit
	}
	return checkedGoal{Goal: g.what, Issue: g.since, Open: g.since == open, Why: beyondReach[g.what], Limit: g.limit,
		AtLeast: g.atLeast, Value: value, Met: met}, measured
}
