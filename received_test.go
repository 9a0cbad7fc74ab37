package hhfr_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// half is what arrives of a body that breaks off: longer than the part that is inspected to
// recognize it.
var half = "<half>" + strings.Repeat("x", 8<<10)

// isBrokenOff checks the error of a body that broke off: the same one over each path.
func isBrokenOff(t *testing.T, err error, what ...any) {
	t.Helper()
	var e *hhfr.Error
	if assert.ErrorAs(t, err, &e, what...) {
		assert.Same(t, e, err, what...)
		assert.Equal(t, hhfr.FateUnknown, e.Code, what...)
		assert.True(t, e.Sent, what...)
		assert.Equal(t, 1, strings.Count(err.Error(), "hhfr: "), "%v", err)
	}
}

// A reply that breaks off is the same error for every reader: when the service fails, and when the
// caller gives up.
func TestRepliesThatBreakOff(t *testing.T) {
	services, fail := http.NewServeMux(), make(chan struct{})
	services.HandleFunc("/fails", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, half)
		_ = http.NewResponseController(w).Flush()
		<-fail
		panic(http.ErrAbortHandler)
	})
	services.HandleFunc("/stays", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, half)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	services.Handle("/", echo)
	for _, by := range ways {
		url := serve(t, by, services)
		cfg := config(t)
		transport := &hhfr.Transport{Config: *cfg}
		defer transport.Close()
		client := dial(t, url+"/", cfg)
		require.NoError(t, call(t, client)) // from now on over a stream, if there may be one
		if by != plain {
			untilStream(t, transport, url+"/")
		}
		read := map[string]func(ctx context.Context, path string) (io.ReadCloser, error){
			"Client": func(ctx context.Context, path string) (io.ReadCloser, error) {
				c, err := hhfr.Dial(ctx, url+path, cfg)
				require.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				r, err := c.Call(ctx, &hhfr.Request{Body: hhfr.Body("<a/>")})
				if err != nil {
					return nil, err
				}
				return r.Body, nil
			},
			"Transport": func(ctx context.Context, path string) (io.ReadCloser, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader("<a/>"))
				require.NoError(t, err)
				req.Header.Set("Content-Type", "text/xml")
				resp, err := transport.RoundTrip(req) //nolint:bodyclose // the reader closes it
				if err != nil {
					return nil, err
				}
				return resp.Body, nil
			},
		}
		if by != secure { // Call does not trust its certificate
			read["Call"] = func(ctx context.Context, path string) (io.ReadCloser, error) {
				r, err := hhfr.Call(ctx, url+path, "<a/>")
				if err != nil {
					return nil, err
				}
				return r.Body, nil
			}
		}
		for how, open := range read {
			body, err := open(t.Context(), "/fails")
			require.NoError(t, err, "%s, %s", by, how)
			_, err = io.ReadFull(body, make([]byte, len(half)))
			require.NoError(t, err, "%s, %s", by, how)
			fail <- struct{}{}
			_, err = body.Read(make([]byte, 1))
			isBrokenOff(t, err, "%s, %s", by, how)
			require.NoError(t, body.Close())

			ctx, cancel := context.WithCancel(t.Context())
			body, err = open(ctx, "/stays")
			require.NoError(t, err, "%s, %s", by, how)
			_, err = io.ReadFull(body, make([]byte, len(half)))
			require.NoError(t, err, "%s, %s", by, how)
			cancel()
			_, err = body.Read(make([]byte, 1))
			isBrokenOff(t, err, "%s, %s", by, how)
			require.ErrorIs(t, err, context.Canceled, "%s, %s", by, how)
			require.NoError(t, body.Close())
		}
	}
}

// A request that breaks off is the same error for the service that reads it: when the client's body
// fails, and when the client gives up.
func TestRequestsThatBreakOff(t *testing.T) {
	came := make(chan error, 1)
	reading := make(chan struct{}, 1)
	services := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("SOAPAction") != `"urn:broken"` {
			echo(w, r)
			return
		}
		if _, err := io.ReadFull(r.Body, make([]byte, len(half))); err != nil {
			came <- err
			return
		}
		reading <- struct{}{}
		_, err := r.Body.Read(make([]byte, 1))
		came <- err
	})
	for _, by := range ways {
		url := serve(t, by, services)
		if by == plain {
			url = "http://" + start(t, &hhfr.Server{Handler: services, Store: newStore(t)})
		}
		send := func(ctx context.Context, body io.Reader) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
			require.NoError(t, err)
			req.Header.Set("Content-Type", "text/xml")
			req.Header.Set("SOAPAction", `"urn:broken"`)
			base := http.DefaultTransport.(*http.Transport).Clone()
			defer base.CloseIdleConnections()
			_, err = base.RoundTrip(req) //nolint:bodyclose // an error
			return err
		}
		if by != plain {
			c := dial(t, url, nil)
			require.NoError(t, call(t, c))
			send = func(ctx context.Context, body io.Reader) error {
				_, err := c.Call(ctx, &hhfr.Request{Action: "urn:broken", Body: body})
				return err
			}
		}
		torn := readFunc(func() error { <-reading; return errTorn })
		require.Error(t, send(t.Context(), io.MultiReader(strings.NewReader(half), torn)))
		isBrokenOff(t, <-came, "%s: the body fails", by)

		ctx, cancel := context.WithCancel(t.Context())
		body, w := io.Pipe()
		sent := make(chan error, 1)
		go func() { sent <- send(ctx, body) }()
		_, err := io.WriteString(w, half)
		require.NoError(t, err)
		<-reading
		cancel()
		isBrokenOff(t, <-came, "%s: the client gives up", by)
		require.NoError(t, w.Close()) // net/http waits for it
		require.ErrorIs(t, <-sent, context.Canceled)
	}
}

// The same holds for a message that the peer begins: when its body fails, and when its stream
// breaks.
func TestMessagesThatBreakOff(t *testing.T) {
	read := make(chan struct{})
	url := beginner(t, func(s *streamer.Stream) {
		head := []byte("POST / HTTP/1.1\r\n\r\n")
		for _, end := range []func(){func() {}, func() { s.Abort(streamer.CloseGoingAway, "") }} {
			body := io.MultiReader(strings.NewReader(half), readFunc(func() error {
				<-read
				end()
				return errTorn
			}))
			_ = s.Lane(0).Send(context.Background(), &streamer.Message{Head: head, Body: body})
		}
	})
	c := dial(t, url, nil)
	n := 0
	for m := range c.Messages() {
		_, err := io.ReadFull(m.Body, make([]byte, len(half)))
		require.NoError(t, err)
		read <- struct{}{}
		_, err = m.Body.Read(make([]byte, 1))
		n++
		isBrokenOff(t, err, "message %d", n)
		if n == 2 {
			break
		}
	}
	assert.Equal(t, 2, n)
}

// readFunc is a reader that only fails.
type readFunc func() error

func (f readFunc) Read([]byte) (int, error) { return 0, f() }

// The value that a service compares with is left unchanged.
func TestRequestWithoutBody(t *testing.T) {
	addr := start(t, &hhfr.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.NoBody, r.Body)
	})})
	resp, err := http.Get("http://" + addr)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	http.DefaultClient.CloseIdleConnections()
}
