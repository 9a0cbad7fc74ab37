package hhfr_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/clock"
)

// BenchmarkSumToEcho is what /sum costs beside /echo over a stream, with ten numbers a call: the
// medians of short rounds in turn, and their ratio. What it reports is the processor time of both
// peers; run it with GOMAXPROCS=1.
func BenchmarkSumToEcho(b *testing.B) {
	const calls = 100
	services, err := peer.NewServices(peer.Echo(), peer.Sum())
	require.NoError(b, err)
	var times [2][]time.Duration
	var call [2]func(i int)
	for i, path := range []string{peer.SumPath, peer.EchoPath} {
		call[i] = calledService(b, services, path)
	}
	for n := 0; b.Loop(); n++ {
		for i := range call {
			before := clock.Processor()
			for j := range calls {
				call[i](n*calls + j)
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
	b.ReportMetric(medians[0], "sum-cpu-ns/call")
	b.ReportMetric(medians[1], "echo-cpu-ns/call")
	b.ReportMetric(medians[0]/medians[1], "ratio")
}

// calledService calls a service over a stream.
func calledService(b *testing.B, services http.Handler, path string) func(i int) {
	client := dialed(b, "http://"+start(b, &hhfr.Server{Handler: services})+path)
	var envelopes [256]string
	for i := range envelopes {
		var items strings.Builder
		for j := range 10 {
			fmt.Fprintf(&items, "<item>%d.%02d</item>", (i*31+j*17)%1000, (i*7+j*13)%100)
		}
		envelopes[i] = in11(`<sum xmlns="` + peer.Namespace + `">` + items.String() + "</sum>")
	}
	call := func(i int) {
		reply, err := client.Call(b.Context(), &hhfr.Request{Body: hhfr.Body(envelopes[i%len(envelopes)])})
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, reply.Status)
		_, err = io.Copy(io.Discard, reply.Body)
		require.NoError(b, err)
	}
	for i := range envelopes { // until a stream is open, and the shapes are known
		call(i)
	}
	return call
}
