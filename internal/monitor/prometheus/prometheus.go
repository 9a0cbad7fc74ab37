// Package prometheus writes counters in the text format of Prometheus (docs/metrics.md).
package prometheus

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hhfr/hhfr/internal/meter"
)

// Exporter writes the counters of a process.
type Exporter struct{ set *metrics.Set }

// New returns an exporter of what take returns when it is called.
func New(take func() *meter.Snapshot) *Exporter {
	e := &Exporter{set: metrics.NewSet()}
	e.set.RegisterMetricsWriter(func(w io.Writer) { write(w, take()) })
	return e
}

// Write writes all series: those of hhfr, then those of the Go runtime and the process.
func (e *Exporter) Write(w io.Writer) {
	e.set.WritePrometheus(w)
	var library bytes.Buffer
	metrics.WriteProcessMetrics(&library)
	describeLibrary(w, library.Bytes())
}

// family is a metric, whose series differ in their labels.
type family struct {
	name, kind, help string
	upstream         func(*meter.UpstreamCounts, sink)
	operation        func(*meter.OperationCounts, sink)
	times            func(*meter.OperationCounts, histogramSink)
}

// sink takes the value of a series, and labels beside those of its upstream or operation.
type sink func(value float64, labels ...string)

// histogramSink takes a histogram, with the sum of its values.
type histogramSink func(buckets []meter.Bucket, sum float64, labels ...string)

var uptime = family{name: "hhfr_uptime_seconds", kind: "gauge", help: "Time since the start."}

// describe writes what comes before the series of a family.
func describe(w io.Writer, f *family) {
	_, _ = io.WriteString(w, "# HELP "+f.name+" "+f.help+"\n# TYPE "+f.name+" "+f.kind+"\n")
}

// write writes each family as a whole, as the format demands.
func write(w io.Writer, s *meter.Snapshot) {
	describe(w, &uptime)
	metrics.WriteGaugeFloat64(w, uptime.name, s.Now.Sub(s.Began).Seconds())
	for i := range families {
		f := &families[i]
		begun := false
		put := func(suffix string, value float64, labels []string) {
			if !begun {
				describe(w, f)
				begun = true
			}
			series := f.name + suffix + labelled(labels)
			if value == math.Trunc(value) && value >= 0 {
				metrics.WriteGaugeUint64(w, series, uint64(value)) // in full, where %g would have an exponent
			} else {
				metrics.WriteGaugeFloat64(w, series, value)
			}
		}
		for _, u := range s.Upstreams {
			if f.upstream != nil {
				f.upstream(u, func(value float64, more ...string) {
					put("", value, append([]string{"role", u.Role, "upstream", u.Upstream}, more...))
				})
			}
		}
		for _, o := range s.Operations {
			labels := []string{"role", o.Role, "operation", o.Operation}
			if f.operation != nil {
				f.operation(o, func(value float64, more ...string) { put("", value, slices.Concat(labels, more)) })
			}
			if f.times != nil {
				f.times(o, func(buckets []meter.Bucket, sum float64, more ...string) {
					all := slices.Concat(labels, more)
					for _, b := range buckets {
						put("_bucket", float64(b.Calls), slices.Concat(all, []string{"le", bound(b)}))
					}
					put("_sum", sum, all)
					put("_count", float64(buckets[len(buckets)-1].Calls), all)
				})
			}
		}
	}
}

// bound is the label of a bucket.
func bound(b meter.Bucket) string {
	if b.Seconds == 0 {
		return "+Inf"
	}
	return strconv.FormatFloat(b.Seconds, 'g', -1, 64)
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled writes labels, each a name and a value.
func labelled(labels []string) string {
	var b strings.Builder
	for i := 0; i < len(labels); i += 2 {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(labels[i] + `="` + escape.Replace(labels[i+1]) + `"`)
	}
	return b.String() + "}"
}

// Describe lists the metrics of hhfr: name, type and meaning.
func Describe() (list [][3]string) {
	for _, f := range append([]family{uptime}, families...) {
		list = append(list, [3]string{f.name, f.kind, f.help})
	}
	return list
}
