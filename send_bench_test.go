package hhfr_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/workload"
)

// The benchmarks below are of a client and a server of this package, over TCP on loopback, with
// requests as applications make them: fields of their own, and a body that is a bytes.Reader. What
// they report is the processor time of both peers; run them with GOMAXPROCS=1.

func BenchmarkCall(b *testing.B) {
	client, requests, _ := calling(b)
	benchmarkCPU(b, func(i int) {
		reply, err := client.Call(b.Context(), requests(i))
		require.NoError(b, err)
		_, err = io.Copy(io.Discard, reply.Body)
		require.NoError(b, err)
	})
}

// BenchmarkCallsInFlight is of 64 callers at once.
func BenchmarkCallsInFlight(b *testing.B) {
	const callers = 64
	client, requests, _ := calling(b)
	b.ReportAllocs()
	b.ResetTimer()
	before := clock.Processor()
	var wait sync.WaitGroup
	for first := range callers {
		wait.Go(func() {
			for i := first; i < b.N; i += callers {
				reply, err := client.Call(b.Context(), requests(i))
				if !assert.NoError(b, err) {
					return
				}
				_, err = io.Copy(io.Discard, reply.Body)
				assert.NoError(b, err)
			}
		})
	}
	wait.Wait()
	b.ReportMetric(float64(clock.Processor()-before)/float64(b.N), "cpu-ns/op")
}

func BenchmarkSend(b *testing.B) {
	client, requests, came := calling(b)
	before := came()
	benchmarkCPU(b, func(i int) { require.NoError(b, client.Send(b.Context(), requests(i))) })
	require.NoError(b, client.Close())
	require.GreaterOrEqual(b, came(), before+int64(b.N))
}

func benchmarkCPU(b *testing.B, do func(i int)) {
	b.ReportAllocs()
	before := clock.Processor()
	for i := 0; b.Loop(); i++ {
		do(i)
	}
	b.ReportMetric(float64(clock.Processor()-before)/float64(b.N), "cpu-ns/op")
}

// calling is a client with a stream to a service that returns what it gets, or counts it.
func calling(b *testing.B) (client *hhfr.Client, request func(int) *hhfr.Request, came func() int64) {
	const warm = 256 // calls after which a stream is open, and the shapes are known
	var envelopes [][]byte
	for m := range workload.Floats(1, 10) {
		if envelopes = append(envelopes, m); len(envelopes) == warm {
			break
		}
	}
	var count atomic.Int64
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		_, _ = io.Copy(w, r.Body)
	})
	client, err := hhfr.Dial(b.Context(), "http://"+start(b, &hhfr.Server{Handler: service}), nil)
	require.NoError(b, err)
	b.Cleanup(func() { _ = client.Close() })
	fields := http.Header{"Content-Type": {"text/xml; charset=utf-8"}, "Soapaction": {`"urn:echo"`},
		"Authorization": {"Basic dXNlcjpwYXNzd29yZA=="}}
	request = func(i int) *hhfr.Request {
		return &hhfr.Request{Header: fields, Body: bytes.NewReader(envelopes[i%warm])}
	}
	for i := range warm {
		reply, err := client.Call(b.Context(), request(i))
		require.NoError(b, err)
		_, err = reply.ReadAll()
		require.NoError(b, err)
	}
	return client, request, count.Load
}
