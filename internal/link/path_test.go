package link_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func path(t testing.TB, profile string, way int) *link.Path {
	t.Helper()
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	pa, err := link.NewPath(p, way)
	require.NoError(t, err)
	return pa
}

// sent is a datagram in transit: its delay, and the time at which it was sent.
type sent struct {
	at, took time.Duration
	copies   int
}

// offer sends n datagrams of 100 bytes, so far apart that the queue stays empty.
func offer(t testing.TB, profile string, way, n int) (all []sent, stats link.PathStats) {
	t.Helper()
	p := path(t, profile, way)
	for i := range n {
		at := time.Duration(i) * 100 * time.Millisecond
		s := sent{at: at}
		for _, arrives := range p.Send(start.Add(at), 100) {
			if s.copies++; s.copies == 1 {
				s.took = arrives.Sub(start.Add(at))
			}
		}
		all = append(all, s)
	}
	return all, p.Stats()
}

func TestPathTakesTheTimeOfItsOctets(t *testing.T) {
	for _, name := range link.Names() {
		p, err := link.ParseProfile(name)
		require.NoError(t, err)
		pa := path(t, name, 0)
		for i := 1; i <= 3; i++ { // one after the other
			got := pa.Send(start, 1000)
			require.Len(t, got, 1, name)
			within(t, wire(p, int64(i)*1028)+p.RTT/2, got[0].Sub(start))
		}
		got := pa.Send(start.Add(time.Hour), 1000)
		require.Len(t, got, 1)
		within(t, wire(p, 1028)+p.RTT/2, got[0].Sub(start.Add(time.Hour)))
		assert.Equal(t, link.PathStats{Sent: 4, Wire: 4 * 1028}, pa.Stats())
	}
}

func TestPathQueueAndMTU(t *testing.T) {
	pa := path(t, "14k4,queue=6000,mtu=1028", 0)
	assert.Empty(t, pa.Send(start, 1001))
	for range 5 {
		assert.Len(t, pa.Send(start, 1000), 1)
	}
	assert.Empty(t, pa.Send(start, 1000))
	assert.Equal(t, link.PathStats{Sent: 7, TooLong: 1, Dropped: 1, Wire: 5140}, pa.Stats())
	assert.Len(t, pa.Send(start.Add(time.Second), 1000), 1, "there is space again")
	assert.Len(t, path(t, "edge", 0).Send(start, 1472), 1)
	assert.Empty(t, path(t, "edge", 0).Send(start, 1473))
}

func TestPathLoses(t *testing.T) {
	const n = 20_000
	for _, profile := range []string{"lte,loss=5%", "lte,loss=0.3", "lte,loss=5%,burst=4", "lte,loss=30%,burst=10"} {
		p, err := link.ParseProfile(profile)
		require.NoError(t, err)
		all, stats := offer(t, profile+",seed=3", 0, n)
		lost, runs := 0, 0
		for i, s := range all {
			if s.copies == 0 {
				lost++
				if i == 0 || all[i-1].copies > 0 {
					runs++
				}
			}
		}
		assert.EqualValues(t, lost, stats.Lost)
		assert.InDelta(t, p.Loss, float64(lost)/n, 0.1*max(p.Loss, 0.2), profile)
		if p.Burst > 1 {
			assert.InEpsilon(t, p.Burst, float64(lost)/float64(runs), 0.15, profile)
		}
	}
	all, _ := offer(t, "lte,loss=100%,burst=3", 0, 10)
	for _, s := range all {
		assert.Zero(t, s.copies)
	}
}

func TestPathJitterKeepsTheOrderAndReorderDoesNot(t *testing.T) {
	overtaken := func(profile string) (n int) {
		p := path(t, profile, 0)
		var last time.Time
		for i := range 2000 {
			for _, at := range p.Send(start.Add(time.Duration(i)*time.Millisecond), 100) {
				if at.Before(last) {
					n++
				}
				last = at
			}
		}
		return n
	}
	assert.Zero(t, overtaken("lte,jitter=40ms"))
	assert.InDelta(t, 200, overtaken("lte,reorder=10%"), 60)
	all, stats := offer(t, "lte,jitter=40ms,dup=10%,reorder=5%", 1, 2000)
	twice, least, most := 0, time.Hour, time.Duration(0)
	for _, s := range all {
		assert.Positive(t, s.copies)
		if s.copies == 2 {
			twice++
		}
		least, most = min(least, s.took), max(most, s.took)
	}
	assert.EqualValues(t, twice, stats.Duplicated)
	assert.InDelta(t, 200, twice, 60)
	assert.InDelta(t, 100, float64(stats.Reordered), 50)
	assert.InDelta(t, 0.025, least.Seconds(), 0.002)
	assert.Greater(t, most, 60*time.Millisecond)
}

func TestPathOutages(t *testing.T) {
	all, _ := offer(t, "lte,outage=5s/60s,seed=4", 0, 6000)
	var out time.Duration
	runs := 0
	for i, s := range all {
		if s.copies == 0 {
			out += 100 * time.Millisecond
			if i == 0 || all[i-1].copies > 0 {
				runs++
			}
		}
	}
	assert.InDelta(t, 50, out.Seconds(), 5.1)
	assert.InDelta(t, 10, runs, 1)
}

// The seed decides, and each direction has random numbers of its own.
func TestPathIsRepeatable(t *testing.T) {
	const profile = "gprs,loss=10%,burst=2,jitter=80ms,reorder=5%,dup=5%,outage=1s/30s"
	first, _ := offer(t, profile+",seed=5", 0, 500)
	again, _ := offer(t, profile+",seed=5", 0, 500)
	assert.Equal(t, first, again)
	for _, other := range []string{profile + ",seed=6", profile + ",seed=5"} {
		way := 0
		if other == profile+",seed=5" {
			way = 1
		}
		differs, _ := offer(t, other, way, 500)
		assert.NotEqual(t, first, differs, fmt.Sprint(other, way))
	}
}

func TestParseImpairments(t *testing.T) {
	p, err := link.ParseProfile("geo,loss=5%,burst=4,jitter=30ms,reorder=1%,dup=0.5%,mtu=576,outage=5s/60s,seed=9")
	require.NoError(t, err)
	assert.Equal(t, link.Impairment{Burst: 4, Jitter: 30 * time.Millisecond, Reorder: 0.01, Duplicate: 0.005, MTU: 576,
		Outage: 5 * time.Second, OutageEvery: time.Minute}, p.Impairment)
	for _, bad := range []string{
		"geo,burst=-1", "geo,burst=NaN", "geo,loss=90%,burst=2", "geo,jitter=-1s", "geo,jitter=2m", "geo,reorder=101%",
		"geo,dup=-1", "geo,dup=NaN", "geo,mtu=0", "geo,mtu=67", "geo,mtu=65536",
		"geo,outage=5s", "geo,outage=5s/5s", "geo,outage=6s/5s", "geo,outage=-1s/5s", "geo,outage=1s/25h",
		"geo,outage=/", "geo,burst=", "geo,other=1",
	} {
		_, err := link.ParseProfile(bad)
		assert.ErrorIs(t, err, &link.Error{Code: link.BadProfile}, bad)
	}
	for _, option := range []string{"jitter=1ms", "reorder=1%", "dup=1%", "mtu=576", "outage=1s/2s", "burst=2"} {
		p, err := link.ParseProfile("geo," + option)
		require.NoError(t, err)
		_, err = link.Relay(nil, p)
		assert.ErrorIs(t, err, &link.Error{Code: link.Unsupported}, option)
	}
	_, err = link.NewPath(link.Profile{}, 0)
	assert.ErrorIs(t, err, &link.Error{Code: link.BadProfile})
}

// For any profile, what arrives was sent, not before its time, and at most twice.
func FuzzPath(f *testing.F) {
	f.Add("14k4,loss=5%,seed=1", uint16(1472))
	f.Add("lte,loss=30%,burst=10,jitter=1s,reorder=100%,dup=100%,outage=1ms/1s", uint16(1))
	f.Add("geo,mtu=65535,queue=1,rtt=0s,rate=1", uint16(0))
	f.Fuzz(func(t *testing.T, profile string, octets uint16) {
		p, err := link.ParseProfile(profile)
		if err != nil {
			return
		}
		pa, err := link.NewPath(p, 0)
		require.NoError(t, err)
		now := start
		for range 20 {
			got := pa.Send(now, int(octets))
			assert.LessOrEqual(t, len(got), 2)
			for _, at := range got {
				assert.False(t, at.Before(now.Add(p.RTT/2)))
			}
			now = now.Add(time.Second)
		}
	})
}

func TestCarries(t *testing.T) {
	for mtu, fits := range map[int]bool{0: true, 576: false, 1227: false, 1228: true, 9000: true} {
		err := link.Impairment{MTU: mtu}.Carries(1200)
		if fits {
			assert.NoError(t, err, mtu)
		} else {
			assert.ErrorIs(t, err, &link.Error{Code: link.BadProfile}, mtu)
		}
	}
}
