package hhfr_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/workload"
)

// The benchmarks below do the same: an unchanged client of net/http posts envelopes of ten numbers,
// one after another, to an unchanged service that returns them, over TCP on loopback. What they
// report is the processor time of both peers; run them with GOMAXPROCS=1.

func BenchmarkPlainHTTP(b *testing.B) { newPosting(b, plain, `"urn:echo"`).benchmark(b) }

func BenchmarkDropIn(b *testing.B) { newPosting(b, stream, `"urn:echo"`).benchmark(b) }

// BenchmarkDropInToPlainHTTP reports what putting hhfr between the two costs, as the ratio of the
// medians of short rounds in turn: of all that happens on the machine meanwhile both have the same
// part.
func BenchmarkDropInToPlainHTTP(b *testing.B) {
	b.Run("default head", func(b *testing.B) { benchmarkRatio(b, `""`) })
	b.Run("own head", func(b *testing.B) { benchmarkRatio(b, `"urn:echo"`) })
}

func benchmarkRatio(b *testing.B, action string) {
	const calls = 100
	ways := [2]*posting{newPosting(b, stream, action), newPosting(b, plain, action)}
	var times [2][]time.Duration
	for b.Loop() {
		for i, p := range ways {
			before := clock.Processor()
			for range calls {
				p.post(b)
			}
			times[i] = append(times[i], (clock.Processor()-before)/calls)
		}
	}
	var medians [2]float64
	for i := range times {
		slices.Sort(times[i])
		medians[i] = float64(times[i][len(times[i])/2])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medians[0], "dropin-cpu-ns/call")
	b.ReportMetric(medians[1], "plain-cpu-ns/call")
	b.ReportMetric(medians[0]/medians[1], "ratio")
}

// posting is a client that posts to a service by one path.
type posting struct {
	client    *http.Client
	url       string
	action    string
	envelopes [][]byte
	next      int
}

func newPosting(b *testing.B, by way, action string) *posting {
	const warm = 256 // calls after which a stream is open, and the shapes are known
	p := &posting{action: action}
	for m := range workload.Floats(1, 10) {
		if p.envelopes = append(p.envelopes, m); len(p.envelopes) == warm {
			break
		}
	}
	seen := ""
	services := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen = plain.seen(); responder.FactsOf(r.Context()) != nil {
			seen = stream.seen()
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(body)
	})
	if by == plain {
		server, transport := httptest.NewServer(services), &http.Transport{}
		b.Cleanup(server.Close)
		b.Cleanup(transport.CloseIdleConnections)
		p.url, p.client = server.URL, &http.Client{Transport: transport}
	} else {
		transport := &hhfr.Transport{}
		p.url, p.client = "http://"+start(b, &hhfr.Server{Handler: services}), &http.Client{Transport: transport}
		b.Cleanup(func() { require.NoError(b, transport.Close()) })
	}
	for range warm {
		p.post(b)
	}
	require.Equal(b, by.seen(), seen)
	return p
}

func (p *posting) benchmark(b *testing.B) {
	b.ReportAllocs()
	before := clock.Processor()
	for b.Loop() {
		p.post(b)
	}
	b.ReportMetric(float64(clock.Processor()-before)/float64(b.N), "cpu-ns/op")
}

// post sends an envelope and reads it again.
func (p *posting) post(b *testing.B) {
	envelope := p.envelopes[p.next%len(p.envelopes)]
	p.next++
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, p.url, bytes.NewReader(envelope))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/xml; charset=utf-8")
	req.Header.Set("SOAPAction", p.action)
	resp, err := p.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != int64(len(envelope)) {
		b.Fatal(n, err)
	}
	_ = resp.Body.Close()
}
