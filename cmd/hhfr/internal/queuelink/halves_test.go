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
	"net/url"
	"strings"
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
			n := &nearHalf{to, slog.New(slog.DiscardHandler)}
			w := httptest.NewRecorder()
			n.ServeHTTP(w, httptest.NewRequest(c.method, "/sum", strings.NewReader("<b/>")))
			assert.Equal(t, c.status, w.Code)
			assert.Equal(t, c.body, w.Body.String())
		})
	}
}

func newFar(to answering) (*farHalf, context.CancelFunc, *bytes.Buffer) {
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.Background())
	return &farHalf{origin: &url.URL{Scheme: "http", Host: "origin.example:8080"}, client: to,
		log: slog.New(slog.NewTextHandler(&log, nil)), ends: ctx}, stop, &log
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
