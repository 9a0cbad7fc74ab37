package hhfr_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// blocking is a body that says nothing, and tells when it is read and closed.
type blocking struct {
	reading, closed chan struct{}
	rest            io.Reader
}

func newBlocking(beginning string) *blocking {
	return &blocking{make(chan struct{}), make(chan struct{}), strings.NewReader(beginning)}
}

func (b *blocking) Read(p []byte) (int, error) {
	if n, _ := b.rest.Read(p); n > 0 {
		return n, nil
	}
	close(b.reading)
	<-b.closed
	return 0, io.ErrClosedPipe
}

func (b *blocking) Close() error {
	close(b.closed)
	return nil
}

// A call ends with its context, and with its client, also while its body says nothing.
func TestBodiesThatBlock(t *testing.T) {
	late := errors.New("too late")
	for _, by := range ways {
		for name, beginning := range map[string]string{"at once": "", "later": envelope("1.1", "<a/>")[:90]} {
			if by != plain && name == "later" {
				continue // some of it may have been sent
			}
			t.Run(string(by)+" "+name, func(t *testing.T) {
				c := dial(t, serve(t, by, echo), config(t))
				require.NoError(t, call(t, c))
				for _, send := range []func(context.Context, *hhfr.Request) error{
					func(ctx context.Context, r *hhfr.Request) error { _, err := c.Call(ctx, r); return err },
					c.Send,
					func(ctx context.Context, r *hhfr.Request) error { _, err := c.SendAll(ctx, r); return err },
				} {
					ctx, cancel := context.WithCancelCause(t.Context())
					body := newBlocking(beginning)
					go func() {
						<-body.reading
						cancel(late)
					}()
					err := send(ctx, &hhfr.Request{Body: body})
					require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Unsent})
					require.ErrorIs(t, err, late)
					<-body.closed
				}
				require.NoError(t, call(t, c))
			})
		}
		t.Run(string(by)+" closed", func(t *testing.T) {
			c := dial(t, serve(t, by, echo), config(t))
			require.NoError(t, call(t, c))
			body := newBlocking("")
			go func() {
				<-body.reading
				assert.NoError(t, c.Close())
			}()
			_, err := c.Call(t.Context(), &hhfr.Request{Body: body})
			require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Unsent})
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}

// What cannot stand in a request is Invalid over each path, wherever it comes from; the error says
// what it is.
func TestInvalidRequests(t *testing.T) {
	for _, by := range ways {
		url := serve(t, by, echo)
		for _, header := range []http.Header{{"Bad Name": {"x"}}, {"X": {"a\r\nY: b"}}} {
			var name string
			for name = range header {
			}
			for _, mode := range []string{"", "explicit"} {
				cfg := config(t)
				cfg.Header = header
				if mode != "" {
					cfg.Mode = "explicit"
				}
				_, err := hhfr.Dial(t.Context(), url, cfg)
				require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
				require.ErrorContains(t, err, "hhfr: invalid: Config.Header: field \""+name)
			}
			transport := &hhfr.Transport{Config: *config(t)}
			for range 5 { // before the session, and after
				req := request(t, url, header)
				_, err := transport.RoundTrip(req) //nolint:bodyclose // an error
				require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
				require.ErrorContains(t, err, name)
				post(t, transport, url, envelope("1.1", "<a/>"))
			}
			require.NoError(t, transport.Close())
		}
		c := dial(t, url, config(t))
		for range 2 {
			long := http.Header{"X": {strings.Repeat("x", 70_000)}}
			_, err := c.Call(t.Context(), &hhfr.Request{Header: long, Body: hhfr.Body("<a/>")})
			require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
			require.ErrorContains(t, err, "an HTTP head of 70")
			require.NoError(t, call(t, c))
		}
	}
	transport := &hhfr.Transport{}
	defer transport.Close()
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.URL = nil },
		func(r *http.Request) { r.URL.Host = "" },
		func(r *http.Request) { r.URL.Scheme = "gopher" },
	} {
		req := request(t, "http://127.0.0.1:1", nil)
		change(req)
		_, err := transport.RoundTrip(req) //nolint:bodyclose // an error
		require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	}
	require.ErrorIs(t, (&hhfr.Message{}).Reply(t.Context(), nil), &hhfr.Error{Code: hhfr.Invalid})
}

// request is one of SOAP for a transport.
func request(t *testing.T, url string, header http.Header) *http.Request {
	t.Helper()
	body := strings.NewReader(envelope("1.1", "<a/>"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	require.NoError(t, err)
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "text/xml")
	return req
}

// An unchanged client may send heads that are too long for a stream: they go as plain SOAP.
func TestTransportTakesLongHeads(t *testing.T) {
	many := http.Header{}
	for i := range 1100 {
		many.Add("X-Many", strings.Repeat("x", i%10))
	}
	client, url := dropIn(t, echo)
	for name, header := range map[string]http.Header{
		"long": {"X-Long": {strings.Repeat("x", 70_000)}}, "many": many,
	} {
		resp := ask(t, client, url, header)
		assert.Equal(t, http.StatusOK, resp.StatusCode, name)
		assert.Equal(t, plain.seen(), resp.Header.Get("X-Way"), name)
		assert.Equal(t, stream.seen(), ask(t, client, url, http.Header{}).Header.Get("X-Way"))
	}
	header := http.Header{"X-Long": {strings.Repeat("x", 60_000)}}
	assert.Equal(t, stream.seen(), ask(t, client, url, header).Header.Get("X-Way"))
}

// A body that is shorter or longer than its ContentLength is an error, as with net/http: no service
// takes it for a whole message.
func TestBodiesOfAnotherLength(t *testing.T) {
	took := make(chan error, 100)
	client, url := dropIn(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if strings.Contains(string(body), "wrong") {
			took <- err
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		echo(w, r)
	})
	for _, length := range []int{20, 100_000, 2_000_000} {
		for _, declared := range []int{length - 1, length + 1, 2 * length, 10} {
			for _, again := range []bool{false, true} {
				body := func() (io.ReadCloser, error) {
					return io.NopCloser(strings.NewReader(strings.Repeat("wrong", length/5))), nil
				}
				req := request(t, url, nil)
				req.Body, _ = body()
				req.ContentLength, req.GetBody = int64(declared), nil
				if again {
					req.GetBody = body
				}
				_, err := client.Do(req) //nolint:bodyclose // an error
				var e *hhfr.Error
				require.ErrorAs(t, err, &e, "%d instead of %d", length, declared)
				assert.Contains(t, err.Error(), "ContentLength is")
			}
		}
	}
	assert.Equal(t, stream.seen(), ask(t, client, url, http.Header{}).Header.Get("X-Way"))
	for len(took) > 0 {
		require.Error(t, <-took)
	}
	for _, length := range []int{20, 100_000, 2_000_000} { // the right one
		req := request(t, url, nil)
		req.Body = io.NopCloser(strings.NewReader(strings.Repeat("right", length/5)))
		req.ContentLength, req.GetBody = int64(length), nil
		resp, err := client.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Len(t, body, length)
		require.NoError(t, resp.Body.Close())
	}
}

// Errors say the same thing once.
func TestTextsOfErrors(t *testing.T) {
	fails := func() *hhfr.Request {
		return &hhfr.Request{Body: io.MultiReader(strings.NewReader("<a>"), failingReader{})}
	}
	for _, by := range ways {
		c := dial(t, serve(t, by, echo), config(t))
		require.NoError(t, call(t, c))
		_, err := c.Call(t.Context(), fails())
		require.EqualError(t, err, "hhfr: not sent: the disk is gone", by)
	}
	_, err := hhfr.Call(t.Context(), "ftp://127.0.0.1/", "<a/>")
	require.EqualError(t, err, `hhfr: invalid: bad configuration: "ftp://127.0.0.1/" is no http or https URL`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = hhfr.Call(ctx, "http://127.0.0.1:1/", "<a/>")
	require.ErrorContains(t, err, "hhfr: no connection: dial tcp")
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// Close waits some seconds for calls in progress, over each path, and then ends them: a client that
// is closed leaves nothing behind.
func TestCloseEndsCalls(t *testing.T) {
	for _, by := range ways {
		for name, want := range map[string]error{"for ever": &hhfr.Error{Code: hhfr.FateUnknown}, "a moment": nil} {
			t.Run(string(by)+" "+name, func(t *testing.T) {
				t.Parallel()
				began, finish := make(chan struct{}), make(chan struct{})
				url := serve(t, by, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/takes" {
						_, _ = io.Copy(io.Discard, r.Body)
						close(began)
						select {
						case <-finish:
						case <-r.Context().Done():
							return
						}
					}
					echo(w, r)
				}))
				c := dial(t, url, config(t))
				require.NoError(t, call(t, c))
				require.NoError(t, c.Close())
				cfg := config(t)
				cfg.Mode = "explicit"
				c = dial(t, url+"/takes", cfg)
				called := make(chan error, 1)
				go func() {
					r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body(envelope("1.1", "<a/>"))})
					if err == nil {
						_, err = r.ReadAll()
					}
					called <- err
				}()
				<-began
				if want == nil {
					time.AfterFunc(20*time.Millisecond, func() { close(finish) })
				}
				_ = c.Close() // on a stream its error is that of the call
				if err := <-called; want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, want)
				}
			})
		}
	}
}

// Redirections are replies over each path, and lead Config.Header nowhere.
func TestRedirectionsAreReplies(t *testing.T) {
	elsewhere := serve(t, plain, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("it was followed")
	}))
	for _, by := range ways {
		for _, status := range []int{301, 302, 303, 307, 308} {
			url := serve(t, by, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				http.Redirect(w, r, elsewhere, status)
			}))
			cfg := config(t)
			cfg.Header = http.Header{"X-Key": {"k"}}
			c := dial(t, url, cfg)
			for range 2 {
				r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body(envelope("1.1", "<a/>"))})
				require.NoError(t, err)
				assert.Equal(t, status, r.Status, by)
				assert.Equal(t, elsewhere, r.Header.Get("Location"))
				require.NoError(t, r.Body.Close())
				require.ErrorIs(t, c.Send(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")}), refusedOrNone(by))
			}
		}
	}
}

// refusedOrNone is the error of a one-way message that is redirected: on a stream its status comes
// after it was accepted.
func refusedOrNone(by way) error {
	if by == plain {
		return &hhfr.Error{Code: hhfr.Refused}
	}
	return nil
}

// What a program leaves out is an error of this package, or does what the documentation says; it is
// never a panic.
func TestWhatIsNil(t *testing.T) {
	var none context.Context
	url := serve(t, stream, echo)
	dialed, zero, absent := dial(t, url, config(t)), new(hhfr.Client), (*hhfr.Client)(nil)
	server := &hhfr.Server{Handler: echo, Store: newStore(t)}
	start(t, server)
	fails := map[string]func(body *closing) error{
		"Dial": func(*closing) error { _, err := hhfr.Dial(none, url, nil); return err },
		"Call": func(b *closing) error { _, err := hhfr.Call(none, url, &hhfr.Request{Body: b}); return err },
		"Call without a request": func(*closing) error {
			_, err := hhfr.Call(t.Context(), url, (*hhfr.Request)(nil))
			return err
		},
		"Serve":            func(*closing) error { return new(hhfr.Server).Serve(nil) },
		"Server.Shutdown":  func(*closing) error { return server.Shutdown(none) },
		"Handler.Shutdown": func(*closing) error { return new(hhfr.Handler).Shutdown(none) },
		"RoundTrip": func(*closing) error {
			_, err := new(hhfr.Transport).RoundTrip(nil) //nolint:bodyclose // an error
			return err
		},
	}
	for name, c := range map[string]*hhfr.Client{"no context": dialed, "zero": zero, "absent": absent} {
		ctx := none
		if c != dialed {
			ctx = t.Context()
		}
		fails["Client.Call "+name] = func(b *closing) error {
			_, err := c.Call(ctx, &hhfr.Request{Body: b})
			return err
		}
		fails["Client.Send "+name] = func(b *closing) error { return c.Send(ctx, &hhfr.Request{Body: b}) }
		fails["Client.SendAll "+name] = func(b *closing) error {
			n, err := c.SendAll(ctx, &hhfr.Request{}, &hhfr.Request{Body: b})
			assert.Zero(t, n)
			return err
		}
	}
	for name, fail := range fails {
		t.Run(name, func(t *testing.T) {
			body := &closing{Reader: strings.NewReader("<a/>")}
			require.ErrorIs(t, fail(body), &hhfr.Error{Code: hhfr.Invalid})
			if strings.HasPrefix(name, "Client") || name == "Call" {
				assert.True(t, body.is)
			}
		})
	}
	for _, c := range []*hhfr.Client{zero, absent} {
		for range c.Messages() {
			t.Error("a message of nobody")
		}
		require.NoError(t, c.Close())
	}
	var last error
	for m, err := range hhfr.Decode(nil, nil) {
		assert.Nil(t, m)
		last = err
	}
	require.ErrorIs(t, last, &hhfr.Error{Code: hhfr.Malformed})
	handler := &hhfr.Handler{Handler: echo}
	handler.ServeHTTP(nil, request(t, url, nil))
	handler.ServeHTTP(httptest.NewRecorder(), nil)
	require.NoError(t, handler.Close())
	empty := new(hhfr.Reply)
	assert.Nil(t, empty.Fault())
	body, err := empty.ReadAll()
	require.NoError(t, err)
	assert.Empty(t, body)
	transport := &hhfr.Transport{}
	for range 3 { // in plain SOAP, and over a stream
		req := request(t, url, nil)
		req.Header = nil
		_, err = transport.RoundTrip(req) //nolint:bodyclose // an error
		require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
		post(t, transport, url, envelope("1.1", "<a/>"))
	}
	require.NoError(t, transport.Close())
	require.NoError(t, call(t, dialed), "it is as good as before")
}
