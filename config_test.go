package hhfr_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// blocked is a server that agrees to streams at a port where nobody listens.
func blocked(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(shared.Addr(t))
	require.NoError(t, err)
	h, err := responder.NewHandler(echo,
		responder.Config{Store: newStore(t), Addresses: map[string]string{"tcp": ":" + port}})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, h.Close())
	})
	return server.URL
}

// OnPlain is called once with the reason why there is no stream, and the remedy.
func TestOnPlain(t *testing.T) {
	for name, tc := range map[string]struct {
		url  string
		mode negotiate.Mode
		says []string
	}{
		"knows nothing":   {serve(t, plain, echo), "", []string{"plain SOAP to http://127.0.0.1:", "offers no stream"}},
		"declines offers": {serve(t, plain, echo), "explicit", []string{"plain SOAP to http://127.0.0.1:", "404"}},
		"port is closed":  {blocked(t), "explicit", []string{"no stream to 127.0.0.1:", "refused", "open that port"}},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan error, 10)
			cfg := config(t)
			cfg.OnPlain, cfg.Mode = func(why error) { told <- why }, tc.mode
			c := dial(t, tc.url, cfg)
			require.NoError(t, call(t, c))
			why := <-told // beside the calls
			for range 3 {
				require.NoError(t, call(t, c))
			}
			require.NoError(t, c.Close())
			require.Empty(t, told)
			require.ErrorIs(t, why, &hhfr.Error{Code: hhfr.NoHHFR})
			for _, s := range tc.says {
				assert.Contains(t, why.Error(), s)
			}
			transport := &hhfr.Transport{Config: hhfr.Config{OnPlain: cfg.OnPlain, Mode: tc.mode}}
			assert.Equal(t, "HTTP", post(t, transport, tc.url, envelope("1.1", "<a/>")))
			<-told
			for range 3 {
				assert.Equal(t, "HTTP", post(t, transport, tc.url, envelope("1.1", "<a/>")))
			}
			require.NoError(t, transport.Close())
			require.Empty(t, told)
		})
	}
}

// A transport that speaks plain SOAP with ever more services remembers no more of them.
func TestOnPlainRemembersFewServices(t *testing.T) {
	assert.Equal(t, 999, hhfr.PlainServices(999))
	assert.Equal(t, 1000, hhfr.PlainServices(10_000))
	assert.Equal(t, 1000, hhfr.PlainServices(100_000))
}

// A stream that breaks is reported once too, and so is the next one that breaks after a stream.
func TestOnPlainWhenAStreamBreaks(t *testing.T) {
	server := &hhfr.Server{Handler: echo, Store: newStore(t)}
	url := "http://" + start(t, server)
	told := make(chan error, 8)
	cfg := config(t)
	cfg.Reconnect, cfg.OnPlain = -1, func(why error) { told <- why }
	c := dial(t, url, cfg)
	require.NoError(t, call(t, c))
	require.Empty(t, told)
	require.NoError(t, server.Close())
	err := call(t, c)
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Unreachable})
	require.ErrorIs(t, <-told, &hhfr.Error{Code: hhfr.NoHHFR})
	require.ErrorIs(t, call(t, c), &hhfr.Error{Code: hhfr.Unreachable})
	require.NoError(t, c.Close())
	require.Empty(t, told)
}

func openStore(t *testing.T, name string) ctxstore.Store {
	t.Helper()
	s, err := bolt.Open(name, bolt.Config{})
	require.NoError(t, err)
	return s
}

// counter is a service that counts what it gets.
type counter struct {
	mu  sync.Mutex
	got []string
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if string(body) == "<panic/>" {
		panic("on purpose")
	}
	c.got = append(c.got, string(body))
	w.Header().Set("Content-Type", "text/xml")
	_, _ = w.Write(body)
}

func (c *counter) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.got...)
}

// Unchanged services get messages under each guarantee, also from used stores.
func TestGuarantees(t *testing.T) {
	for _, g := range []hhfr.Guarantee{0, hhfr.AtLeastOnce, hhfr.ExactlyOnce} {
		for _, ordered := range []bool{false, true} {
			dir := t.TempDir()
			services := &counter{}
			near, far := openStore(t, filepath.Join(dir, "near")), openStore(t, filepath.Join(dir, "far"))
			url := "http://" + start(t, &hhfr.Server{Handler: services, Store: far})
			for range 2 {
				c := dial(t, url, &hhfr.Config{Store: near, Guarantee: g, Ordered: ordered})
				for _, body := range []string{"<a/>", "<panic/>", "<b/>"} {
					r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body(body)})
					if g == 0 && !ordered && body == "<panic/>" {
						require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.FateUnknown})
						continue
					}
					require.NoError(t, err, "%v %v %s", g, ordered, body)
					if body == "<panic/>" {
						assert.Equal(t, http.StatusInternalServerError, r.Status)
						require.NoError(t, r.Body.Close())
						continue
					}
					assert.Equal(t, body, readAll(t, r))
				}
				require.NoError(t, c.Send(t.Context(), &hhfr.Request{Body: hhfr.Body("<c/>")}))
				require.NoError(t, c.Close(), "%v", g)
			}
			if g != 0 {
				assert.Equal(t, []string{"<a/>", "<b/>", "<c/>", "<a/>", "<b/>", "<c/>"}, services.seen(), "%v %v", g,
					ordered)
			}
			t.Cleanup(func() { assert.NoError(t, near.Close()); assert.NoError(t, far.Close()) })
		}
	}
}

// A guarantee that cannot be given is an error before anything is sent.
func TestGuaranteesThatNobodyGives(t *testing.T) {
	var e *hhfr.Error
	_, err := hhfr.Dial(t.Context(), "http://127.0.0.1:1",
		&hhfr.Config{Guarantee: hhfr.ExactlyOnce, Store: newStore(t)})
	require.ErrorAs(t, err, &e)
	assert.Equal(t, hhfr.Invalid, e.Code, "a store in memory")
	_, err = hhfr.Dial(t.Context(), serve(t, plain, echo), &hhfr.Config{Guarantee: hhfr.AtLeastOnce})
	require.ErrorAs(t, err, &e)
	assert.Equal(t, hhfr.NoHHFR, e.Code)
	assert.False(t, e.Sent)
}

// A caller that stops waiting for a message under a guarantee learns that the message is kept.
func TestKept(t *testing.T) {
	release := make(chan struct{})
	url := "http://" + start(t, &hhfr.Server{Store: openStoreUntilEnd(t),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-release
		})})
	c := dial(t, url, &hhfr.Config{Store: openStoreUntilEnd(t), Guarantee: hhfr.ExactlyOnce})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Call(ctx, &hhfr.Request{Body: hhfr.Body("<a/>")})
	var e *hhfr.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, hhfr.Kept, e.Code)
	assert.True(t, e.Sent)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(release)
	require.NoError(t, c.Close(), "it waits until the message is done")
}

func openStoreUntilEnd(t *testing.T) ctxstore.Store {
	t.Helper()
	s := openStore(t, filepath.Join(t.TempDir(), "store"))
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}
