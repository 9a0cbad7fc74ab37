package meter_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/meter"
)

// one counts a call as a proxy does.
func one(up *meter.Upstream, c *meter.Call, name []byte, now time.Time) {
	*c = meter.Call{} //nolint:govet // nobody else has it
	up.Begin(c, now)
	c.Name(name)
	c.Request(1000)
	c.Wire().Sent.Add(40)
	c.Added(time.Microsecond)
	c.Wire().Received.Add(30)
	c.Reply(2000)
	c.Added(time.Microsecond)
	c.Done(now, true)
}

// TestCountingAllocatesNothing: neither an operation with counters of its own, nor one of the
// others.
func TestCountingAllocatesNothing(t *testing.T) {
	m := meter.New(time.Now())
	up := m.Near.Upstream("http://x")
	for i := range 1000 {
		one(up, new(meter.Call), fmt.Append(nil, "Operation", i), time.Now())
	}
	for _, name := range []string{"Operation7", "Operation700", ""} {
		c, b := new(meter.Call), []byte(name)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { one(up, c, b, time.Time{}) }), name)
	}
}

// TestConcurrentCalls: nothing is lost when operations get counters of their own meanwhile.
func TestConcurrentCalls(t *testing.T) {
	m := meter.New(time.Now())
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 5000 {
				operation := fmt.Append(nil, "O", i*(g+1)%2000)
				one(m.Far.Upstream(fmt.Sprint("http://", i%3)), new(meter.Call), operation, time.Now())
				if i%1000 == 0 {
					m.Snapshot(time.Now())
				}
			}
		})
	}
	all.Wait()
	s := m.Snapshot(time.Now())
	var calls, sent int64
	for _, o := range s.Operations {
		calls += o.Calls
		sent += o.SentBytes
	}
	assert.EqualValues(t, 40_000, calls)
	assert.EqualValues(t, 40_000*40, sent)
	require.Len(t, s.Upstreams, 3)
	calls = 0
	for _, u := range s.Upstreams {
		calls += u.Calls
		assert.Zero(t, u.InProgress)
	}
	assert.EqualValues(t, 40_000, calls)
}

// TestManyUpstreams: beyond a bound they share their counters.
func TestManyUpstreams(t *testing.T) {
	m := meter.New(time.Now())
	for i := range 5000 {
		one(m.Serve.Upstream(fmt.Sprint("/", i)), new(meter.Call), nil, time.Now())
	}
	s := m.Snapshot(time.Now())
	assert.LessOrEqual(t, len(s.Upstreams), 1001)
	var calls int64
	for _, u := range s.Upstreams {
		calls += u.Calls
	}
	assert.EqualValues(t, 5000, calls)
}

// BenchmarkCall is what a call costs that is counted.
func BenchmarkCall(b *testing.B) {
	for name, operation := range map[string]string{"own": "Operation7", "other": "Operation700"} {
		b.Run(name, func(b *testing.B) {
			m := meter.New(time.Now())
			up := m.Near.Upstream("http://x")
			for i := range 1000 {
				one(up, new(meter.Call), fmt.Append(nil, "Operation", i), time.Now())
			}
			c, name := new(meter.Call), []byte(operation)
			b.ReportAllocs()
			for b.Loop() {
				one(up, c, name, time.Time{})
			}
		})
	}
}
