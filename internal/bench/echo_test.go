package bench_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
)

// echo runs a session in virtual time.
func echo(t *testing.T, profile string, way bench.SessionWay, n int) (c bench.Cell) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		c, err = bench.Echo(t.Context(), clock.Real(), profile, way, n)
		require.NoError(t, err, "%s, %s, n = %d", profile, way, n)
	})
	return c
}

// roundTrips are those of sessions of one message and of three.
var roundTrips = map[bench.SessionWay][2]float64{
	bench.Explicit:        {5, 7}, // connection, offer, connection, hello, messages
	bench.ExplicitQueued:  {5, 5},
	bench.FirstCall:       {2, 4}, // as plain SOAP on a kept connection
	bench.FirstCallQueued: {2, 3}, // the others wait for the first reply
	bench.FirstCallTLS:    {3, 5},
	bench.Met:             {2, 4},
	bench.MetQueued:       {2, 2},
	bench.MetTLS:          {3, 5},
	bench.MetTLSQueued:    {3, 3},

	bench.SOAPNew:      {2, 6},
	bench.SOAPNewGzip:  {2, 6},
	bench.SOAPKept:     {2, 4},
	bench.SOAPKeptGzip: {2, 4},
	bench.H2CQueued:    {2, 2},

	bench.HTTPSNew:             {3, 9},
	bench.HTTPSNewGzip:         {3, 9},
	bench.HTTPSResumedNew:      {3, 9}, // resuming without early data saves no round trip
	bench.HTTPSResumedNewGzip:  {3, 9},
	bench.HTTPSKept:            {3, 5},
	bench.HTTPSKeptGzip:        {3, 5},
	bench.HTTPSResumedKept:     {3, 5},
	bench.HTTPSResumedKeptGzip: {3, 5},
	bench.H2Queued:             {3, 3},
	bench.H2ResumedQueued:      {3, 3},
}

// On a link on which bytes take no time, a session takes its round trips, and no other time.
func TestEchoTakesItsRoundTrips(t *testing.T) {
	for _, way := range bench.Ways() {
		want, known := roundTrips[way]
		require.True(t, known, "%s", way)
		for i, n := range []int{1, 3} {
			c := echo(t, "14k4,rate=8000M", way, n)
			assert.InDelta(t, want[i]*1000, c.Millis, 0.1, "%s, n = %d", way, n)
		}
	}
}

// On a thin link it takes its bytes as well, to the microsecond if nothing is sent in both
// directions at once.
func TestEchoTakesItsBytes(t *testing.T) {
	for _, way := range bench.Ways() {
		c := echo(t, "gprs", way, 10)
		assert.Greater(t, c.Millis, c.Least, "%s", way)
		assert.InDelta(t, c.Expected, c.Millis, 0.05*c.Expected, "%s", way)
		if way == bench.SOAPKept || way == bench.Explicit {
			assert.InDelta(t, c.Expected, c.Millis, 0.01, "%s", way)
		}
		if way == bench.SOAPKept {
			assert.InDelta(t, 11*600+float64(c.Sent+c.Received)*8/40, c.Millis, 0.01)
			again := echo(t, "gprs", way, 10)
			assert.Equal(t, c, again)
		}
	}
}

// Compressed messages are smaller in both directions, and resumed connections carry no certificate.
func TestEchoWays(t *testing.T) {
	cells := map[bench.SessionWay]bench.Cell{}
	for _, way := range bench.Ways() {
		cells[way] = echo(t, "wifi", way, 1)
	}
	for zipped, plain := range map[bench.SessionWay]bench.SessionWay{
		bench.SOAPNewGzip: bench.SOAPNew, bench.SOAPKeptGzip: bench.SOAPKept, bench.HTTPSNewGzip: bench.HTTPSNew,
		bench.HTTPSKeptGzip: bench.HTTPSKept, bench.HTTPSResumedKeptGzip: bench.HTTPSResumedKept,
	} {
		assert.Less(t, cells[zipped].Sent, cells[plain].Sent-150, "%s", zipped)
		assert.Less(t, cells[zipped].Received, cells[plain].Received-150, "%s", zipped)
	}
	assert.Less(t, cells[bench.HTTPSResumedKept].Received, cells[bench.HTTPSKept].Received-200)
	assert.Less(t, cells[bench.H2ResumedQueued].Received, cells[bench.H2Queued].Received-150)
}

// A hundred messages in flight at once leave as a train of packets, not in one packet each.
func TestEchoQueued(t *testing.T) {
	one, all := echo(t, "14k4", bench.ExplicitQueued, 1), echo(t, "14k4", bench.ExplicitQueued, 100)
	assert.Less(t, all.Sent-one.Sent, int64(99*46+4*40))
	waiting := echo(t, "14k4", bench.Explicit, 100)
	assert.Less(t, all.Millis, waiting.Millis/10)
}

func TestEchoRefuses(t *testing.T) {
	const p = "wifi"
	_, err := bench.Echo(t.Context(), nil, p, "pigeon", 1)
	require.ErrorIs(t, err, bench.ErrConfig)
	assert.ErrorContains(t, err, "soap-kept")
	_, err = bench.Echo(t.Context(), nil, p, bench.SOAPKept, 0)
	require.ErrorIs(t, err, bench.ErrConfig)
	_, err = bench.Echo(t.Context(), clock.Real(), "pigeon", bench.SOAPKept, 1)
	require.ErrorIs(t, err, &link.Error{Code: link.BadProfile})
}

// BreakEvens finds the number of messages from which a session is as fast, and stays so.
func TestBreakEvens(t *testing.T) {
	all := cells(bench.Explicit, 0, map[int]float64{1: 100, 2: 100, 4: 130, 8: 140})
	all = append(all, cells(bench.SOAPNew, 0, map[int]float64{1: 99, 2: 110, 4: 120, 8: 140, 16: 1})...)
	all = append(all, cells(bench.SOAPKept, 0, map[int]float64{1: 100, 8: 141})...)
	all = append(all, cells(bench.SOAPKeptGzip, 0, map[int]float64{1: 98.9, 2: 99.1, 4: 129, 8: 139})...)
	all = append(all, cells(bench.SOAPNewGzip, 0, map[int]float64{8: 130})...)
	all = append(all, cells(bench.HTTPSKept, 0, map[int]float64{1: 500})...)
	all = append(all, cells(bench.H2CQueued, 0, map[int]float64{1: 500})...)
	assert.Equal(t, []bench.BreakEven{
		{Service: "sum", Size: 10, Way: bench.Explicit, Against: bench.SOAPNew, N: 8, First: 100. / 99, Last: 1},
		{Service: "sum", Size: 10, Way: bench.Explicit, Against: bench.SOAPKept, N: 1, First: 1, Last: 140. / 141},
		{Service: "sum", Size: 10, Way: bench.Explicit, Against: bench.SOAPNewGzip, N: 0, First: 140. / 130,
			Last: 140. / 130},
		{Service: "sum", Size: 10, Way: bench.Explicit, Against: bench.SOAPKeptGzip, N: 2, First: 100 / 98.9,
			Last: 140. / 139},
	}, bench.BreakEvens(all))
}
