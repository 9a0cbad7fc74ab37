package queuelink

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/soapjms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering answers requests of HTTP by a function.
type answering func(r *http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func replyOf(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(strings.NewReader(body))}
}

func TestNearHalf(t *testing.T) {
	failed := func(code soapjms.Code) error { return &soapjms.Error{Code: code, Err: errors.New("so it is")} }
	for name, c := range map[string]struct {
		method string
		reply  *http.Response
		err    error
		status int
		body   string
	}{
		"a reply":     {"POST", replyOf(200, "text/xml", "<a/>"), nil, 200, "<a/>"},
		"a fault":     {"POST", replyOf(500, "text/xml", "<f/>"), nil, 500, "<f/>"},
		"nothing":     {"POST", replyOf(202, "", ""), nil, 202, ""},
		"no reply":    {"POST", nil, failed(soapjms.NoReply), 504, "soapjms: no reply: so it is\n"},
		"no broker":   {"POST", nil, failed(soapjms.Unreachable), 503, "soapjms: broker unreachable: so it is\n"},
		"a full one":  {"POST", nil, failed(soapjms.Refused), 503, "soapjms: the broker refuses: so it is\n"},
		"too large":   {"POST", nil, failed(soapjms.TooLarge), 413, "soapjms: message too large: so it is\n"},
		"malformed":   {"POST", nil, failed(soapjms.Malformed), 502, "soapjms: malformed reply: so it is\n"},
		"not to post": {"GET", nil, nil, 405, "SOAP is posted here\n"},
	} {
		t.Run(name, func(t *testing.T) {
			to := answering(func(*http.Request) (*http.Response, error) { return c.reply, c.err })
			n := &nearHalf{to, slog.New(slog.DiscardHandler), make(chan struct{}, mostLong)}
			w := httptest.NewRecorder()
			n.ServeHTTP(w, httptest.NewRequest(c.method, "/sum", strings.NewReader("<b/>")))
			assert.Equal(t, c.status, w.Code)
			assert.Equal(t, c.body, w.Body.String())
		})
	}
}

// Of long requests no more than some are in memory at once, whose length need not be known; short
// ones pass meanwhile.
func TestLongRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		to := answering(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err == nil && len(body) > small {
				<-answer
			}
			return replyOf(200, "text/xml", "<a/>"), err
		})
		n := &nearHalf{to, slog.New(slog.DiscardHandler), make(chan struct{}, mostLong)}
		var all sync.WaitGroup
		ask := func(length int) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			all.Go(func() {
				n.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/sum", io.LimitReader(zeros{}, int64(length))))
			})
			synctest.Wait()
			return w
		}
		var held []*httptest.ResponseRecorder
		for range mostLong {
			held = append(held, ask(small+1))
		}
		short, late := ask(small-1), ask(small+1)
		assert.Equal(t, "<a/>", short.Body.String())
		time.Sleep(longWait)
		synctest.Wait()
		assert.Equal(t, http.StatusServiceUnavailable, late.Code)
		assert.Contains(t, late.Body.String(), "16 requests of more than 1048576 bytes")
		next := ask(small + 1)
		close(answer)
		all.Wait()
		for _, w := range append(held, next) {
			assert.Equal(t, "<a/>", w.Body.String())
		}
		assert.Empty(t, n.long)
	})
}

func newFar(to answering) (*farHalf, context.CancelFunc, *bytes.Buffer) {
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.Background())
	return &farHalf{origin: &url.URL{Scheme: "http", Host: "origin.example:8080"}, client: to,
		log: slog.New(slog.NewTextHandler(&log, nil)), ends: ctx, cut: context.Background()}, stop, &log
}

func TestFarHalf(t *testing.T) {
	f, stop, _ := newFar(func(r *http.Request) (*http.Response, error) {
		assert.Equal(t, "http://origin.example:8080/a?b=c", r.URL.String())
		assert.Equal(t, "text/xml", r.Header.Get("Content-Type"))
		body, err := io.ReadAll(r.Body)
		return replyOf(200, "text/xml", string(body)+string(body)), err
	})
	defer stop()
	r := httptest.NewRequest(http.MethodPost, "http://queue/a?b=c", strings.NewReader("<b/>"))
	r.Header.Set("Content-Type", "text/xml")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	assert.Equal(t, 200, w.Code)
	assert.Equal(t, "<b/><b/>", w.Body.String())
}

// An origin that is not there gets no request, and is looked for with pauses that grow; one that
// does not answer may have handled it.
func TestOriginIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error = &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
		f, stop, log := newFar(func(*http.Request) (*http.Response, error) { return nil, err })
		begin := time.Now()
		try := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://queue/a", strings.NewReader("<b/>")))
			return w
		}
		for range 12 {
			require.PanicsWithValue(t, soapjms.ErrNotNow, func() { try() })
		}
		assert.Equal(t, 51100*time.Millisecond+3*longestPause, time.Since(begin))
		assert.Equal(t, 1, strings.Count(log.String(), "the origin is not there"))
		stop()
		begin = time.Now()
		require.PanicsWithValue(t, soapjms.ErrNotNow, func() { try() })
		assert.Zero(t, time.Since(begin), "it does not wait at the end")
		err = errors.New("connection reset")
		w := try()
		assert.Equal(t, http.StatusBadGateway, w.Code)
		assert.Contains(t, w.Body.String(), "may have handled the request")
	})
}

// Requests that wait at once for an origin that is not there count as one attempt.
func TestManyWaitForTheOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, stop, _ := newFar(nil)
		defer stop()
		begin := time.Now()
		for range 3 {
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() { f.wait(t.Context(), errors.New("refused")) })
			}
			all.Wait()
		}
		assert.Equal(t, 700*time.Millisecond, time.Since(begin))
	})
}

// silent is an origin that accepts and does not answer.
func silent(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// slow is one whose reply ends nowhere.
func slow(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	in, out := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: in}, nil
}

func TestOriginDoesNotAnswer(t *testing.T) {
	ask := func(f *farHalf) string {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://queue/a", strings.NewReader("<b/>")))
		assert.Equal(t, http.StatusBadGateway, w.Code)
		return w.Body.String()
	}
	const told = "no reply from the origin, which may have handled the request: "
	for name, origin := range map[string]answering{"silent": silent, "slow": slow} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, stop, _ := newFar(origin)
				begin := time.Now()
				assert.Equal(t, told+"no whole reply within 5m0s\n", ask(f))
				assert.Equal(t, originTime, time.Since(begin))

				var end context.CancelFunc
				f.cut, end = endsAfter(f.ends, time.Second)
				defer end()
				begin = time.Now()
				time.AfterFunc(time.Minute, stop)
				assert.Equal(t, told+"the proxy was ended\n", ask(f))
				assert.Equal(t, time.Minute+time.Second, time.Since(begin))
			})
		})
	}
}

// What has no connection when it has to end was not sent, and is in the queue again.
func TestEndedBeforeItIsSent(t *testing.T) {
	f, stop, _ := newFar(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	stop()
	f.cut = f.ends
	require.PanicsWithValue(t, soapjms.ErrNotNow, func() {
		f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://queue/a", http.NoBody))
	})
}

// A connection that is open long may be closed by the origin as a request comes.
func TestConnectionsAreNotKeptLong(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	closed := make(chan struct{})
	origin.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	origin.Start()
	defer origin.Close()
	f, stop, _ := newFar(originTransport(nil).RoundTrip)
	defer stop()
	f.origin = &url.URL{Scheme: "http", Host: origin.Listener.Addr().String()}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://queue/a", strings.NewReader("<b/>")))
	require.Equal(t, http.StatusOK, w.Code)
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("the connection stays open")
	}
}

func TestReplyIsTooLong(t *testing.T) {
	f, stop, _ := newFar(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(zeros{})}, nil
	})
	defer stop()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://queue/a", http.NoBody))
	assert.Equal(t, http.StatusBadGateway, w.Code)
	assert.Contains(t, w.Body.String(), "its reply is longer than 67108864 bytes")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestCheckFlags(t *testing.T) {
	all, everywhere := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	everywhere.Bool("quiet", false, "")
	all.AddFlagSet(everywhere)
	for _, name := range []string{"mode", "store", "store-token", "upstream"} {
		all.String(name, "", "")
	}
	require.NoError(t, all.Parse([]string{"--quiet", "--store", "a", "--store-token", "b", "--upstream", "c"}))
	require.NoError(t, CheckFlags(all, everywhere))
	require.NoError(t, all.Parse([]string{"--mode", "met"}))
	require.ErrorContains(t, CheckFlags(all, everywhere), "--mode does not go with a queue as the link")
}
