//go:build unix

package session_test

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// processorTime is what this process has taken so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDial is a dial with a call, by what lies in the stores of both ends, for each way to a
// session with a peer that was spoken to before.
func BenchmarkDial(b *testing.B) {
	for _, engine := range []string{"memory", "directory", "bolt"} {
		for _, n := range []struct{ shapes, sessions int }{{0, 0}, {1000, 10000}, {100000, 10000}} {
			b.Run(fmt.Sprintf("%s/shapes=%d/sessions=%d", engine, n.shapes, n.sessions), func(b *testing.B) {
				stores := sync.OnceValue(func() (both [2]ctxstore.Store) {
					for i := range both {
						both[i] = openEngine(b, engine)
						fill(b, both[i], n.shapes, n.sessions)
					}
					return both
				})
				for _, mode := range []negotiate.Mode{negotiate.FirstCall, negotiate.Met, negotiate.Explicit} {
					b.Run(string(mode), func(b *testing.B) { benchmarkDial(b, mode, stores()) })
				}
			})
		}
	}
}

func benchmarkDial(b *testing.B, mode negotiate.Mode, stores [2]ctxstore.Store) {
	d := open(b, http.HandlerFunc(repeat), false, func(c *responder.Config) { c.Store = stores[1] })
	cfg := d.config(mode)
	cfg.Store = stores[0]
	n := counted(&cfg)
	before := mode
	if mode == negotiate.Met {
		before, cfg.Mode = negotiate.FirstCall, negotiate.FirstCall
	}
	message := request(b)
	callOnce(b, d.url, cfg, before, message)
	callOnce(b, d.url, cfg, before, message)
	cfg.Mode = mode
	n.Store(0)
	began := processorTime(b)
	for b.Loop() {
		callOnce(b, d.url, cfg, mode, message)
	}
	b.ReportMetric(float64((processorTime(b)-began).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(n.Load())/float64(b.N), "wire-B/op")
}
