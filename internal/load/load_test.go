package load_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/load"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/shared"
)

// services are the test services, also over streams.
func services(t *testing.T) string {
	s, err := peer.NewServices(peer.GeoIP(peer.DutchRanges()), peer.Echo(), peer.Sum())
	require.NoError(t, err)
	h := &hhfr.Handler{Handler: s}
	server := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); server.Close() })
	return server.URL
}

// errEnough is an error of no kind that is known.
var errEnough = errors.New("enough")

// measure runs a config for a short time, and returns its rows.
func measure(t *testing.T, c load.Config) (rows []experiment.LoadRow) {
	t.Helper()
	c.Each = func(r experiment.LoadRow) error { rows = append(rows, r); return nil }
	c.For, c.Repeat, c.Timeout = cmp.Or(c.For, 50*time.Millisecond), cmp.Or(c.Repeat, 1), cmp.Or(c.Timeout, time.Minute)
	require.NoError(t, load.Run(t.Context(), c))
	return rows
}

// Every service, over every transport, with every kind of request, has no errors.
func TestAnswersAreRight(t *testing.T) {
	url := services(t)
	for _, service := range load.Services() {
		t.Run(service, func(t *testing.T) {
			rows := measure(t, load.Config{URL: url + "/" + service, Service: service, Seed: 7, Repeat: 2,
				Ways: load.WayNames(), Clients: []int{1, 8},
				Mix: load.Mix{load.Valid: 1, load.Invalid: 1, load.Odd: 1}})
			require.Len(t, rows, 12)
			for _, r := range rows {
				assert.Positive(t, r.Responses, "%+v", r)
				assert.Equal(t, r.Responses, r.Successful, "%+v", r)
				assert.Empty(t, r.Errors)
				assert.Positive(t, r.SentOctets)
				assert.Positive(t, r.ReceivedOctets)
				assert.NotContains(t, r.Doubt, "plain SOAP")
				assert.InDelta(t, -1, r.ServerMillis, 0)
				counted := int64(0)
				for _, s := range r.Course {
					counted += s.Successful
				}
				assert.Equal(t, r.Successful, counted)
			}
			kept, stream := rows[4], rows[8]
			assert.Less(t, stream.SentOctets/stream.Responses, kept.SentOctets/kept.Responses)
		})
	}
}

// A service that has no streams answers all the same, and the row says that it is of plain SOAP.
func TestWithoutStreams(t *testing.T) {
	s, err := peer.NewServices(peer.GeoIP(peer.DutchRanges()))
	require.NoError(t, err)
	server := httptest.NewServer(s)
	defer server.Close()
	r := measure(t, load.Config{URL: strings.Replace(server.URL, "//", "//me:secret@", 1) + "/geoip", Service: "geoip",
		Ways: []string{load.Stream}, Clients: []int{2}})[0]
	assert.Equal(t, r.Responses, r.Successful, "%v", r.Examples)
	assert.Contains(t, r.Doubt, fmt.Sprintf("%d requests went as plain SOAP: ", r.Responses))
	assert.NotContains(t, r.Peer, "secret")
	assert.Zero(t, r.SentOctets)
}

// Each kind of error is told from the others, by plain SOAP on new and stored connections, and over
// streams where there is one.
func TestErrorsByKind(t *testing.T) {
	blocked := make(chan struct{})
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/xml; charset=utf-8")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const open = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`
	const end = `</s:Body></s:Envelope>`
	const fault = open + `<s:Fault><faultcode>s:Server</faultcode><faultstring>no</faultstring></s:Fault>` + end
	for _, c := range []struct {
		kind    string
		handler http.HandlerFunc
		mix     load.Mix
		timeout time.Duration
	}{
		{"fault", answer(500, fault), nil, 0},
		{"fault", answer(200, fault), nil, 0},
		{"wrong answer", answer(200, open+`<r><result>perhaps</result></r>`+end), nil, 0},
		{"wrong answer", answer(200, open+`<r><result>true</result></r>`+end), load.Mix{load.Invalid: 1}, 0},
		{"wrong answer", answer(202, ""), nil, 0},
		{"status", answer(500, "<html>no</html>"), nil, 0},
		{"status", answer(503, fault), nil, 0},
		{"status", answer(302, ""), nil, 0},
		{"timed out", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-blocked:
			}
		}, nil, 20 * time.Millisecond},
		{"reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, 0},
		{"reset", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		}, nil, 0},
	} {
		t.Run(c.kind, func(t *testing.T) {
			h := &hhfr.Handler{Handler: c.handler}
			server := httptest.NewServer(h)
			defer server.Close()
			defer h.Close()
			for _, r := range measure(t, load.Config{URL: server.URL + "/geoip", Service: "geoip", Mix: c.mix,
				Ways: load.WayNames(), Clients: []int{2}, Timeout: c.timeout}) {
				assert.Positive(t, r.Responses)
				assert.Equal(t, map[string]int64{c.kind: r.Responses}, r.Errors, "%s: %v", r.Way, r.Examples)
				assert.NotEmpty(t, r.Examples[c.kind])
				assert.Zero(t, r.Successful+int64(r.MaxMillis))
				assert.Empty(t, r.Histogram)
			}
		})
	}
	close(blocked)
	t.Run("refused", func(t *testing.T) { // by one that was there at first
		for _, way := range load.WayNames() {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			left := make(chan error, 1)
			go func() {
				conn, err := l.Accept()
				left <- cmp.Or(err, l.Close(), conn.Close())
			}()
			r := measure(t, load.Config{URL: "http://" + l.Addr().String() + "/geoip", Service: "geoip",
				Ways: []string{way}, Clients: []int{2}})[0]
			require.NoError(t, <-left)
			assert.Positive(t, r.Responses)
			assert.Equal(t, r.Responses, r.Errors["refused"]+r.Errors["reset"], "%s: %v", r.Way, r.Examples)
			assert.Positive(t, r.Errors["refused"])
		}
	})
	t.Run("other", func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, errEnough }
		for _, r := range measure(t, load.Config{URL: "http://127.0.0.1:1/geoip", Service: "geoip",
			Ways: []string{load.SOAPKept}, Clients: []int{2}, Dial: dial}) {
			assert.Equal(t, map[string]int64{"other": r.Responses}, r.Errors, "%v", r.Examples)
		}
	})
}

// Nobody there is an error at once, and no row.
func TestNobodyThere(t *testing.T) {
	began := time.Now()
	for _, url := range []string{"http://" + shared.Addr(t) + "/geoip", "https://" + shared.Addr(t) + "/geoip"} {
		err := load.Run(t.Context(), load.Config{URL: url, Service: "geoip", Ways: load.WayNames(), Clients: []int{1},
			Repeat: 1, For: time.Hour, Timeout: time.Hour,
			Each: func(experiment.LoadRow) error { return errEnough }})
		require.ErrorIs(t, err, load.ErrUnreachable)
		assert.ErrorContains(t, err, "refused")
	}
	assert.Less(t, time.Since(began), time.Hour)
}

// stalled has a service answer at once, but for its first request, which waits for the test.
func stalled(t *testing.T) (dial func(context.Context, string, string) (net.Conn, error), release func(), stop func()) {
	services, err := peer.NewServices(peer.GeoIP(peer.DutchRanges()))
	require.NoError(t, err)
	over := &inproc.Transport{}
	l, err := over.Listen(t.Context(), "service")
	require.NoError(t, err)
	wait := make(chan struct{})
	var first atomic.Bool
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			<-wait
		}
		services.ServeHTTP(w, r)
	})}
	go server.Serve(l)
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return over.Dial(ctx, "service") },
		func() { close(wait) }, func() { _ = server.Close() }
}

// A server that stalls for five seconds shows in the response times of all that was due meanwhile,
// at full length by the clock, however few requests are in flight.
func TestStallShowsAtFullLength(t *testing.T) {
	for _, c := range []struct {
		name       string
		clients    int
		late, mean float64 // requests, ms
		slow       int     // how many took a second or more
	}{
		{"one in flight", 1, 49, 1275, 41},
		{"many in flight", 50, 0, 50, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial, release, stop := stalled(t)
				time.AfterFunc(5*time.Second, release)
				r := measure(t, load.Config{URL: "http://service/geoip", Service: "geoip",
					Ways: []string{load.SOAPKept}, Clients: []int{c.clients}, Rate: 10, For: 10 * time.Second,
					Dial: dial})[0]
				stop()
				assert.EqualValues(t, 100, r.Successful)
				assert.Zero(t, r.Unsent)
				assert.InDelta(t, 5000, r.MaxMillis, 1e-9)
				assert.InDelta(t, c.mean, r.MeanMillis, 1e-6)
				assert.InDelta(t, c.late, r.Late, 0)
				assert.Equal(t, c.late > 0, strings.Contains(r.Doubt, "late"), r.Doubt)
				slow := int64(0)
				for _, bar := range r.Histogram {
					if bar.Millis >= 1000 {
						slow += bar.Count
					}
				}
				assert.EqualValues(t, c.slow, slow)
			})
		})
	}
}

// What is due and not sent by the end of a row is counted, and no response.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, release, stop := stalled(t)
		r := measure(t, load.Config{URL: "http://service/geoip", Service: "geoip", Ways: []string{load.SOAPNew},
			Clients: []int{1}, Rate: 100, For: time.Second, Timeout: 2 * time.Second, Dial: dial})[0]
		release()
		stop()
		assert.EqualValues(t, 1, r.Responses)
		assert.Equal(t, map[string]int64{"timed out": 1}, r.Errors)
		assert.EqualValues(t, 99, r.Unsent)
		assert.Contains(t, r.Doubt, "99 of 100 requests were sent late or not at all")
	})
}

// Requests that come at random come as often, at the same times for the same seed.
func TestPoisson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(seed uint64) experiment.LoadRow {
			dial, release, stop := stalled(t)
			defer stop()
			release()
			return measure(t, load.Config{URL: "http://service/geoip", Service: "geoip", Ways: []string{load.SOAPKept},
				Clients: []int{100}, Rate: 100, Poisson: true, Seed: seed, For: 100 * time.Second, Dial: dial})[0]
		}
		one := at(1)
		assert.InDelta(t, 10000, one.Successful, 400) // four standard deviations
		assert.Equal(t, one.Course, at(1).Course)
		assert.NotEqual(t, one.Course, at(2).Course)
		assert.Zero(t, one.Late)
	})
}

// What a run has measured when it is interrupted is a row, and says so.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, release, stop := stalled(t)
		defer stop()
		release()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		var rows []experiment.LoadRow
		err := load.Run(ctx, load.Config{URL: "http://service/geoip", Service: "geoip", Ways: []string{load.SOAPKept},
			Clients: []int{1, 2}, Repeat: 1, Rate: 100, For: time.Second, Timeout: time.Second, Dial: dial,
			Each: func(r experiment.LoadRow) error { rows = append(rows, r); return nil }})
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, rows, 2)
		assert.Empty(t, rows[0].Doubt)
		assert.EqualValues(t, 100, rows[0].Successful)
		assert.Equal(t, "interrupted", rows[1].Doubt)
		assert.EqualValues(t, 50, rows[1].Successful)
		assert.Zero(t, rows[1].Unsent)
	})
}

// Statistics are those of the sorted times, to three digits, over repeats as over one row.
func TestStatisticsAreThoseOfSorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		over := &inproc.Transport{}
		l, err := over.Listen(t.Context(), "service")
		require.NoError(t, err)
		var all []float64
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			took := time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)).Round(time.Microsecond)
			all = append(all, float64(took)/1e6)
			w.Header().Set("Server-Timing", "db;dur=1, app;desc=\"it\";dur=2.5")
			time.Sleep(took)
			_, _ = io.WriteString(w, "right")
		})}
		go server.Serve(l)
		rows := measure(t, load.Config{URL: "http://service/", Message: []byte("<a/>"), Expect: "right", Repeat: 3,
			Ways: []string{load.SOAPKept}, Clients: []int{1}, For: time.Minute, Timeout: time.Hour,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return over.Dial(ctx, "service") }})
		_ = server.Close()
		check := func(r experiment.LoadRow, exact []float64, n int64) {
			slices.Sort(exact)
			sum := 0.0
			for _, v := range exact {
				sum += v
			}
			rank := func(q float64) float64 { return exact[max(int(q*float64(len(exact))+0.999999)-1, 0)] }
			assert.Equal(t, n, r.Successful)
			assert.InDelta(t, sum/float64(len(exact)), r.MeanMillis, 1e-6)
			assert.InDelta(t, exact[len(exact)-1], r.MaxMillis, 1e-9)
			assert.InDelta(t, 2.5, r.ServerMillis, 1e-9)
			for q, got := range map[float64]float64{
				0.5: r.P50Millis, 0.9: r.P90Millis, 0.99: r.P99Millis, 0.999: r.P999Millis,
			} {
				assert.InEpsilon(t, rank(q), got, 0.0015, "%g", q)
			}
		}
		require.Len(t, rows, 3)
		at := 0
		for _, r := range rows {
			check(r, slices.Clone(all[at:at+int(r.Successful)]), r.Successful)
			at += int(r.Successful)
		}
		together := load.Together(rows)
		check(together, all, int64(len(all)))
		assert.Equal(t, 3, together.Repeat)
		assert.InDelta(t, 180, together.Seconds, 1)
		first := rows[0].Course[7].Successful + rows[1].Course[7].Successful + rows[2].Course[7].Successful
		assert.Equal(t, first, together.Course[7].Successful)
	})
}

// A row counts up to 80 % of the processors' time, and up to 1 % of requests late or unsent.
func TestRowsThatDoNotCount(t *testing.T) {
	for _, c := range []struct {
		row  experiment.LoadRow
		want string
	}{
		{experiment.LoadRow{Responses: 1000, Late: 10, GeneratorShare: 0.8}, ""},
		{experiment.LoadRow{Responses: 1000, Late: 11}, "11 of 1000 requests were sent late or not at all"},
		{experiment.LoadRow{Responses: 990, Unsent: 10, Late: 1}, "11 of 1000 requests were sent late or not at all"},
		{experiment.LoadRow{Responses: 990, Unsent: 10}, ""},
		{experiment.LoadRow{Responses: 1, GeneratorShare: 0.81}, "the generator took 81 % of its processors' time"},
		{experiment.LoadRow{Responses: 1, GeneratorShare: -1}, ""},
		{experiment.LoadRow{Unsent: 1, GeneratorShare: 1}, "the generator took 100 % of its processors' time; " +
			"1 of 1 requests were sent late or not at all"},
		{experiment.LoadRow{}, ""},
	} {
		assert.Equal(t, c.want, load.Doubt(&c.row), "%+v", c.row)
	}
}

// What cannot be measured is an error before anything is sent.
func TestCheck(t *testing.T) {
	good := load.Config{URL: "http://127.0.0.1:1/", Service: "geoip", Ways: load.WayNames(), Clients: []int{1},
		Repeat: 1, For: time.Second, Timeout: time.Second}
	require.NoError(t, good.Check())
	for name, change := range map[string]func(*load.Config){
		"no way":            func(c *load.Config) { c.Ways = []string{"pigeon"} },
		"no service":        func(c *load.Config) { c.Service = "blob" },
		"above 0":           func(c *load.Config) { c.Clients = []int{1, 0} },
		"above 0, too":      func(c *load.Config) { c.For = 0 },
		"requests a second": func(c *load.Config) { c.Rate = 2e6 },
		"a mix":             func(c *load.Config) { c.Message, c.Mix = []byte("<a/>"), load.Mix{load.Odd: 1} },
	} {
		c := good
		change(&c)
		want, _, _ := strings.Cut(name, ",")
		require.ErrorContains(t, c.Check(), want)
		require.ErrorContains(t, load.Run(t.Context(), c), want)
	}
	good.Each = func(experiment.LoadRow) error { return errEnough }
	good.For, good.Ways, good.URL = time.Millisecond, []string{load.SOAPNew}, services(t)+"/geoip"
	require.ErrorIs(t, load.Run(t.Context(), good), errEnough)
}
