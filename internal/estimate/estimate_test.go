package estimate

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/pkg/workload"
)

func profiles(t *testing.T, names ...string) (list []link.Profile) {
	for _, name := range names {
		p, err := link.ParseProfile(name)
		require.NoError(t, err)
		list = append(list, p)
	}
	return list
}

func run(t *testing.T, cfg Config, octets []byte) *Report {
	t.Helper()
	r, _, err := Run(t.Context(), cfg, Capture{Octets: bytes.NewReader(octets)})
	require.NoError(t, err)
	return r
}

func floatCalls(n int) func(int) iter.Seq2[[]byte, []byte] {
	return func(c int) iter.Seq2[[]byte, []byte] {
		return calls(workload.Floats(uint64(c), 10), n, plainReply)
	}
}

// The time of a call is that of its bytes and round trips, and of the server.
func TestTimeOfACall(t *testing.T) {
	s := service{clients: 1, every: time.Minute, took: 3 * time.Second, calls: floatCalls(1)}
	r := run(t, Config{Links: profiles(t, "gprs,rtt=2s")}, s.capture(t))
	assert.InDelta(t, 3, r.ServerSeconds, 0.01)
	bytes := float64(r.Total[plain].Bytes)
	assert.InDelta(t, 2+2+3+bytes*8/40_000, r.Links[0].Ways[plain].Call, 0.01,
		"connection, call, server, and bytes")
	octets := float64(r.Operations[0].Ways[firstContact].Bytes)
	assert.InDelta(t, 2+3+octets*8/40_000, r.Links[0].Ways[firstContact].Call, 0.01,
		"the client has no link to its proxy")
	kept := r.Links[0].Ways[kept].Call
	assert.InDelta(t, r.Links[0].Ways[plain].Call, kept, 0.001, "its first connection is opened as well")
}

// A link that cannot carry what the capture has at its pace says so, and takes no more memory for
// that; the others have times.
func TestLinksThatAreTooThin(t *testing.T) {
	s := service{clients: 20, every: 10 * time.Millisecond, calls: floatCalls(10)}
	r := run(t, Config{Links: profiles(t, "14k4,rate=100", "wifi"), mostBehind: 50}, s.capture(t))
	for i := range anew {
		assert.Equal(t, WayOnLink{Way: Ways()[i], TooThin: true}, r.Links[0].Ways[i])
		assert.Zero(t, r.Links[0].Operations[0].Ways[i].Call)
		assert.False(t, r.Links[1].Ways[i].TooThin)
		assert.Positive(t, r.Links[1].Ways[i].Call)
	}
}

// Calls wait for the replies that their client had before them, and for no others.
func TestCallsWaitForReplies(t *testing.T) {
	one := service{clients: 1, every: 100 * time.Millisecond, closed: true, calls: floatCalls(20)}
	many := one
	many.clients = 3
	alone := run(t, Config{Links: profiles(t, "geo")}, one.capture(t)).Links[0].Ways[plain].Call
	assert.InDelta(t, 1.22, alone, 0.02, "a connection and a round trip: no call stands in another's way")
	beside := run(t, Config{Links: profiles(t, "geo")}, many.capture(t)).Links[0].Ways[plain].Call
	assert.InDelta(t, alone, beside, 0.02)
}

// A month is the capture once, and then its second half: when both ends know the traffic.
func TestMonth(t *testing.T) {
	s := service{clients: 1, every: time.Minute, calls: floatCalls(21)}
	r := run(t, Config{Links: profiles(t, "gprs"), PricePerMB: 2}, s.capture(t))
	assert.InDelta(t, 1200, r.Seconds, 0.1)
	assert.Empty(t, r.NoMonth)
	for i, w := range r.Month {
		assert.InEpsilon(t, 2*w.Megabytes, w.Cost, 1e-9)
		assert.InEpsilon(t, float64(r.Total[i].Bytes+2159*r.Steady[i].Bytes)/1e6, w.Megabytes, 1e-3)
	}
	assert.Less(t, r.Steady[firstContact].Bytes, r.Total[firstContact].Bytes-300, "shapes travel once")
	assert.Equal(t, r.Steady[firstContact].Bytes, r.Steady[metBefore].Bytes)
	assert.Equal(t, r.Steady[plain].Bytes, r.Total[plain].Bytes)
	assert.InDelta(t, 21*float64(r.Steady[firstContact].Packets)/42, 21, 0.1, "two packets a call")
}

// Of a few calls, or of a moment, no month is made.
func TestNoMonth(t *testing.T) {
	for name, s := range map[string]service{
		"19 calls in 1.08e+03 s say": {clients: 1, every: time.Minute, calls: floatCalls(19)},
		"40 calls in 39 s say":       {clients: 1, every: time.Second, calls: floatCalls(40)},
	} {
		r := run(t, Config{Links: profiles(t, "gprs"), PricePerMB: 2}, s.capture(t))
		assert.Nil(t, r.Month)
		assert.Contains(t, r.NoMonth, name)
		assert.Equal(t, r.Calls >= leastCalls, r.Steady != nil)
	}
}

// Marks are thinned out as there are more calls: the middle is found within one in thirty.
func TestHalves(t *testing.T) {
	for _, calls := range []int{20, 21, 127, 128, 129, 500, 12345} {
		var h halves
		var sum [ways]traffic
		for i := range calls {
			sum[plain].add(traffic{1000, 2})
			took := int64(100)
			if i < calls/2 {
				took = 900
			}
			sum[firstContact].add(traffic{took, 1})
			h.note(i+1, &sum)
		}
		assert.LessOrEqual(t, len(h.marks), mostMarks)
		all := h.steady(calls, &sum)
		assert.Equal(t, sum[plain], all[plain])
		assert.InEpsilon(t, 100*calls, all[firstContact].Bytes, 0.3, calls)
	}
}

func TestManyServers(t *testing.T) {
	var b bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		rec := pcapng.NewRecorder(&b, time.Now)
		for request, reply := range floatCalls(mostServers + 1)(0) {
			here, there := inproc.Pipe(0)
			server := netip.AddrPortFrom(service1.Addr(), service1.Port()+uint16(len(b.Bytes())/1000%50_000))
			conn := rec.Conn(ends{here, netip.MustParseAddrPort("192.0.2.9:4000"), server})
			_, _ = conn.Write(request)
			_, _ = there.Write(reply)
			_, _ = conn.Read(make([]byte, len(reply)))
			_, _ = conn.Close(), there.Close()
		}
		require.NoError(t, rec.Close())
	})
	_, _, err := Run(t.Context(), Config{}, Capture{Octets: bytes.NewReader(b.Bytes())})
	require.ErrorIs(t, err, ErrManyServers)
}

// interrupting is an input that ends a context once so many bytes were read.
type interrupting struct {
	*bytes.Reader
	left   int
	cancel func()
}

func (r *interrupting) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.left -= n; r.left < 0 {
		r.cancel()
	}
	return n, err
}

// An interrupt ends it with its cause, in either pass.
func TestInterrupt(t *testing.T) {
	octets := service{clients: 1, every: time.Second, calls: floatCalls(200)}.capture(t)
	for pass := range Passes {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		in := &interrupting{bytes.NewReader(octets), pass*len(octets) + len(octets)/2, func() { cancel(why) }}
		_, _, err := Run(ctx, Config{Links: profiles(t, "gprs")}, Capture{Octets: in})
		require.ErrorIs(t, err, why)
		assert.Positive(t, in.Len(), "the rest is not read")
	}
}
