package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// idling is a client of net/http with a RoundTripper, and a service that it has streams with, all
// in memory. Its requests wait for a stream.
type idling struct {
	rt      *session.RoundTripper
	client  *http.Client
	streams atomic.Int64 // that the service has accepted
	close   func()
}

func newIdling(t *testing.T, service http.HandlerFunc, change func(*session.Config)) *idling {
	t.Helper()
	i := &idling{}
	network := &inproc.Transport{}
	listener, err := network.Listen(t.Context(), "service")
	require.NoError(t, err)
	h, err := responder.NewHandler(service, responder.Config{
		Store: newStore(t), Addresses: map[string]string{"inproc": "service"},
		OnStream: func(negotiate.Facts, *streamer.Stream) { i.streams.Add(1) },
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- h.ServeStreams(context.Background(), listener) }()
	cfg := session.Config{
		Mode: negotiate.Auto, Store: newStore(t), RequireHHFR: true,
		Transports: map[string]streamer.Transport{"inproc": network},
	}
	if change != nil {
		change(&cfg)
	}
	i.rt, err = session.NewRoundTripper(inProcess{h}, cfg)
	require.NoError(t, err)
	i.client = &http.Client{Transport: i.rt}
	i.close = func() {
		require.NoError(t, i.rt.Close())
		require.NoError(t, h.Close())
		require.NoError(t, <-served)
	}
	return i
}

const idleURL = "http://service.example"

func (i *idling) post(t *testing.T) {
	t.Helper()
	_, body := post(t, i.client, idleURL+"/echo", "text/xml", strings.NewReader("<e/>"))
	assert.Equal(t, "<e/>", body)
}

// begin sends a request, and returns with the head of its reply.
func (i *idling) begin(t *testing.T) *http.Response {
	t.Helper()
	resp, err := i.client.Post(idleURL+"/slow", "text/xml", strings.NewReader("<e/>"))
	require.NoError(t, err)
	return resp
}

// session is the one that the client has now.
func (i *idling) session(t *testing.T) *session.Session {
	t.Helper()
	s, ok := i.rt.Session(idleURL)
	require.True(t, ok)
	require.True(t, s.Agreed().HHFR, s.Agreed().Why)
	return s
}

func (i *idling) holds(t *testing.T, origins int) {
	t.Helper()
	held, names, idle, _ := i.rt.Held()
	assert.Equal(t, []int{origins, origins}, []int{held, names})
	assert.LessOrEqual(t, idle, held)
}

// A session that no request has used for the time is closed, and nothing of it stays in memory; the
// next request joins it again.
func TestIdleSessionsEnd(t *testing.T) {
	for name, idle := range map[string]time.Duration{"by default": 0, "after an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIdling(t, repeat, func(c *session.Config) { c.Idle = idle })
				if idle == 0 {
					idle = session.DefaultIdle
				}
				i.post(t)
				first := i.session(t)
				for range 3 {
					time.Sleep(idle - time.Second)
					i.post(t)
				}
				require.Same(t, first, i.session(t), "it was used in between")
				require.EqualValues(t, 1, i.streams.Load())

				time.Sleep(idle + time.Second)
				synctest.Wait()
				i.holds(t, 0)
				<-first.Stream().Done()
				require.NoError(t, first.Stream().Err(), "in order")
				i.post(t)
				synctest.Wait() // the service counts a stream beside its first reply
				again := i.session(t)
				assert.Equal(t, negotiate.Met, again.Agreed().Mode)
				assert.Equal(t, first.Agreed().Facts.Session, again.Agreed().Facts.Session)
				assert.EqualValues(t, 2, i.streams.Load())
				i.holds(t, 1)
				i.close()
			})
		})
	}
}

// A session is in use until the body of each reply is read to its end or closed, however long that
// takes, and whatever ends it.
func TestSessionsInUseStay(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			repeat(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, "<e/>")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Hour)
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "<!-- late -->")
	}
	for name, end := range map[string]func(*testing.T, *http.Response){
		"read": func(t *testing.T, resp *http.Response) {
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, "<e/><!-- late -->", string(body))
		},
		"closed": func(t *testing.T, resp *http.Response) {
			time.Sleep(time.Hour / 2)
			require.NoError(t, resp.Body.Close())
		},
		"read late": func(t *testing.T, resp *http.Response) {
			time.Sleep(24 * time.Hour)
			_, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.NoError(t, resp.Body.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIdling(t, slow, nil)
				i.post(t)
				first := i.session(t)
				resp, other := i.begin(t), i.begin(t)
				time.Sleep(2 * session.DefaultIdle)
				i.rt.CloseIdleConnections()
				require.NoError(t, other.Body.Close())
				end(t, resp)
				time.Sleep(session.DefaultIdle - time.Second)
				require.Same(t, first, i.session(t))
				require.NoError(t, first.Stream().Err())
				i.holds(t, 1)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				i.holds(t, 0)
				i.post(t)
				i.close()
			})
		})
	}
}

// Requests that come when their session is just being closed are not lost: they use it, or the next
// one. None is an error, and none goes as plain SOAP.
func TestRequestsWhenASessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdling(t, repeat, nil)
		for range 50 {
			var wait sync.WaitGroup
			for range 4 {
				wait.Go(func() { i.post(t) })
			}
			wait.Wait()
			time.Sleep(session.DefaultIdle)
		}
		i.close()
	})
}

// As above, without a moment that is known: the sessions end again and again while many clients
// call.
func TestRequestsWhileSessionsEnd(t *testing.T) {
	i := newIdling(t, repeat, func(c *session.Config) { c.Idle = time.Nanosecond })
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			for range 100 {
				i.post(t)
				if n == 0 {
					i.rt.CloseIdleConnections()
				}
			}
		})
	}
	wait.Wait()
	i.close()
}

// A session under a guarantee has its sequence alone: the next one waits until it is closed.
func TestRequestsWhileSessionsWithSequencesEnd(t *testing.T) {
	i := newIdling(t, repeat, func(c *session.Config) {
		c.Idle, c.Assurance = time.Nanosecond, wsrm.AtLeastOnce
	})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 30 {
				i.post(t)
				i.rt.CloseIdleConnections()
			}
		})
	}
	wait.Wait()
	for range 30 {
		i.post(t)
		i.rt.CloseIdleConnections()
	}
	i.close()
}

// A message under a guarantee whose caller has gone is still taken: its session stays until then.
func TestSessionsWithPendingMessagesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Bool
		i := newIdling(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(time.Hour)
				taken.Store(true)
			}
			repeat(w, r)
		}, func(c *session.Config) { c.Assurance = wsrm.AtLeastOnce })
		i.post(t)
		first := i.session(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, idleURL+"/slow", strings.NewReader("<e/>"))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "text/xml")
		_, err = i.client.Do(req) //nolint:bodyclose // an error
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(10 * session.DefaultIdle)
		i.rt.CloseIdleConnections()
		require.False(t, taken.Load())
		require.Same(t, first, i.session(t))
		time.Sleep(time.Hour)
		require.True(t, taken.Load())
		time.Sleep(2 * session.DefaultIdle)
		synctest.Wait()
		i.holds(t, 0)
		i.post(t)
		i.close()
	})
}

// Origins that do not speak hhfr, or are not there, are forgotten too: a client that calls ever
// more of them has as much in memory as one that calls few.
func TestMemoryOfAClientThatCallsManyOrigins(t *testing.T) {
	held := func(t *testing.T, count int, answer func(n int, req *http.Request) (*http.Response, error)) (most int) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			rt, err := session.NewRoundTripper(answering(func(req *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, req.Body)
				_ = req.Body.Close()
				return answer(n, req)
			}), session.Config{Mode: negotiate.Auto, Transports: none})
			require.NoError(t, err)
			client := &http.Client{Transport: rt}
			for n = range count {
				url := fmt.Sprintf("http://host%d.example:80/%d", n, n)
				if n%2 == 0 {
					url = fmt.Sprintf("http://HOST%d.example/%d", n, n)
				}
				if resp, err := client.Post(url, "text/xml", strings.NewReader("<e/>")); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					require.NoError(t, resp.Body.Close())
				}
				time.Sleep(time.Second)
				origins, names, idle, fallen := rt.Held()
				most = max(most, origins, names, idle, fallen)
			}
			time.Sleep(session.DefaultIdle)
			synctest.Wait()
			origins, names, idle, _ := rt.Held()
			assert.Equal(t, []int{0, 0, 0}, []int{origins, names, idle})
			require.NoError(t, rt.Close())
		})
		return most
	}
	plain := func(req *http.Request) *http.Response {
		return &http.Response{
			StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader("<e/>")),
		}
	}
	for name, answer := range map[string]func(n int, req *http.Request) (*http.Response, error){
		"plain SOAP": func(_ int, req *http.Request) (*http.Response, error) { return plain(req), nil },
		"no reply":   func(int, *http.Request) (*http.Response, error) { return nil, errors.New("no such host") },
		"redirections to others": func(n int, req *http.Request) (*http.Response, error) {
			resp := plain(req)
			if strings.HasPrefix(strings.ToLower(req.URL.Host), "host") {
				resp.StatusCode = http.StatusPermanentRedirect
				resp.Header.Set("Location", fmt.Sprintf("http://other%d.example/", n))
			}
			return resp, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			few, many := held(t, 1000, answer), held(t, 10_000, answer)
			assert.Equal(t, few, many)
			assert.LessOrEqual(t, many, 2*int(session.DefaultIdle/time.Second)+2)
		})
	}
}

// answering is an [http.RoundTripper].
type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

// A time below 0 is an error.
func TestIdleBelowZero(t *testing.T) {
	_, err := session.NewRoundTripper(nil, session.Config{Idle: -1})
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig})
}
