package session_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// answerWith returns the example answer with changes.
func answerWith(t testing.TB, change func(*negotiate.Answer)) func(http.ResponseWriter, *http.Request) {
	a := exampleAnswer(t)
	change(a)
	data, err := a.Message(soap.V11)
	require.NoError(t, err)
	return reply(200, "text/xml; charset=utf-8", string(data))
}

func reply(status int, contentType, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func deadPort(t testing.TB) string {
	_, port, err := net.SplitHostPort(shared.Addr(t))
	require.NoError(t, err)
	return ":" + port
}

// muteStream is a port that accepts connections and sends nothing, or only what it is given.
func muteStream(t testing.TB, says string) string {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, says)
			if says != "" {
				_ = c.Close()
				continue
			}
			defer c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return ":" + port
}

// Peers of all kinds that know nothing of HHFR, or only pretend to: the application gets plain
// SOAP, and each peer is asked once.
func TestPlainServers(t *testing.T) {
	fault, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.Client, Reason: "no such operation"})
	require.NoError(t, err)
	fault12, err := soap.BuildFault(soap.V12, soap.Fault{Code: soap.Client, Reason: "no such operation"})
	require.NoError(t, err)
	wrong := func(change func(*negotiate.Answer)) http.HandlerFunc { return answerWith(t, change) }
	for name, c := range map[string]struct {
		toOffer http.HandlerFunc
		why     string
	}{
		"fault 500":        {reply(500, "text/xml", string(fault)), "no such operation"},
		"fault 400 of 1.2": {reply(400, "application/soap+xml", string(fault12)), "no such operation"},
		"fault 200":        {reply(200, "text/xml", string(fault)), "no such operation"},
		"404":              {http.NotFound, "404"},
		"405":              {reply(405, "text/plain", "no"), "405"},
		"415":              {reply(415, "text/plain", ""), "415"},
		"500":              {reply(500, "text/html", "<html>"), "500"},
		"202":              {reply(202, "", ""), "202"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "307"},
		"HTML":        {reply(200, "text/html", "<html>hello</html>"), "text/html"},
		"HTML as XML": {reply(200, "text/xml", "<html>hello</html>"), "no answer to an offer"},
		"garbage":     {reply(200, "text/xml", "\x00\xff<<<"), "no answer to an offer: malformed XML"},
		"empty":       {reply(200, "text/xml", ""), "no answer to an offer"},
		"endless":     {reply(200, "text/xml", strings.Repeat(" ", negotiate.MaxOffer+1)), "limit"},
		"SOAP":        {reply(200, "text/xml", envelope("<a/>")), "Answer"},
		"offer back":  {reply(200, "text/xml", string(offerMessage(t, soap.V11))), "Answer"},
		"answer with 500": {func(w http.ResponseWriter, r *http.Request) {
			reply(500, "text/xml", string(answerMessage(t, soap.V11)))(w, r)
		}, "500"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "no reply to the offer: not within 500ms"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			w.Header().Set("Content-Type", "text/xml")
			w.WriteHeader(200)
		}, "broke off"},
		"not offered": {wrong(func(a *negotiate.Answer) { a.Transport = negotiate.TransportURI("owl") }),
			"not offered"},
		"other scheme": {wrong(func(a *negotiate.Answer) { a.Scheme = "urn:hhfr:scheme:2" }), "not offered"},
		"other heads": {wrong(func(a *negotiate.Answer) {
			a.RequestHead = []soap.Field{{Name: "X", Value: "y"}}
		}), "default heads"},
		"other host":        {wrong(func(a *negotiate.Answer) { a.Address = "example.org:9090" }), "nor allowed"},
		"other IP":          {wrong(func(a *negotiate.Answer) { a.Address = "127.0.0.2:9090" }), "nor allowed"},
		"no port":           {wrong(func(a *negotiate.Answer) { a.Address = "9090" }), "address"},
		"named port":        {wrong(func(a *negotiate.Answer) { a.Address = ":http" }), "address"},
		"refused port":      {wrong(func(a *negotiate.Answer) { a.Address = deadPort(t) }), "(connection refused)"},
		"stream speaks not": {wrong(func(a *negotiate.Answer) { a.Address = muteStream(t, "") }), "(not within 3s)"},
		"stream is HTTP": {wrong(func(a *negotiate.Answer) {
			a.Address = muteStream(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}), "stream"},
	} {
		t.Run(name, func(t *testing.T) {
			var offers, calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// Peeking would read the body; old servers answer without that.
				if strings.Contains(r.Header.Get("SOAPAction"), "negotiation") {
					offers.Add(1)
					c.toOffer(w, r)
					return
				}
				calls.Add(1)
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "text/xml; charset=utf-8")
				w.Header().Set("X-Action", strings.Join(r.Header.Values("Soapaction"), "|"))
				w.WriteHeader(500)
				_, _ = w.Write(body)
			}))
			defer server.Close()
			cfg := config(t)
			cfg.Timeout = time.Minute
			switch name {
			case "hangs":
				cfg.Timeout = 500 * time.Millisecond
			case "stream speaks not":
				cfg.Timeout = 3 * time.Second // the answer before it must come in time
			}
			sess := dial(t, server.URL+"/svc", cfg)
			agreed := sess.Agreed()
			assert.False(t, agreed.HHFR)
			assert.False(t, agreed.Remembered)
			assert.Nil(t, agreed.Facts)
			assert.Contains(t, agreed.Why, c.why)
			assert.Equal(t, name == "refused port" || strings.HasPrefix(name, "stream "), agreed.NoStream != "")

			head, body := call(t, sess, crlf("POST /other HTTP/1.1\nSOAPAction: \"urn:a\"\nContent-Type: text/xml\n\n"),
				envelope("<q/>"))
			assert.Equal(t, envelope("<q/>"), body)
			assert.Contains(t, head, "HTTP/1.1 500 Internal Server Error\r\n")
			assert.Contains(t, head, "\r\nX-Action: \"urn:a\"\r\n")

			again := dial(t, server.URL+"/elsewhere", cfg)
			portal := name == "HTML" || name == "redirect" // maybe: it is asked again
			assert.Equal(t, !portal, again.Agreed().Remembered)
			assert.Contains(t, again.Agreed().Why, c.why)
			call(t, again, "", "x")
			assert.EqualValues(t, map[bool]int{false: 1, true: 2}[portal], offers.Load())
			assert.EqualValues(t, 2, calls.Load())

			cfg.RequireHHFR = true
			_, err := session.Dial(t.Context(), server.URL+"/svc", cfg)
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.NoHHFR})
		})
	}
}

func TestPlainIsRememberedForAWhile(t *testing.T) {
	var offers atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		offers.Add(1)
		http.Error(w, "no", 500)
	}))
	defer server.Close()
	clock := newLater()
	cfg := config(t)
	store := memory.New(memory.Config{Clock: clock})
	defer store.Close()
	cfg.Store, cfg.Clock = store, clock
	for range 3 {
		dial(t, server.URL, cfg)
	}
	assert.EqualValues(t, 1, offers.Load())
	clock.forward(session.DefaultRememberFor + time.Second)
	cfg.RememberFor = time.Hour
	dial(t, server.URL, cfg)
	assert.EqualValues(t, 2, offers.Load())
	clock.forward(time.Hour - time.Minute)
	dial(t, server.URL, cfg)
	assert.EqualValues(t, 2, offers.Load(), "for as long as configured")
	clock.forward(2 * time.Minute)
	dial(t, server.URL, cfg)
	assert.EqualValues(t, 3, offers.Load())
	cfg.RememberFor = -1
	dial(t, server.URL, cfg)
	dial(t, server.URL, cfg)
	assert.EqualValues(t, 5, offers.Load())
}

func TestNobodyThere(t *testing.T) {
	cfg := config(t)
	_, err := session.Dial(t.Context(), "http://127.0.0.1"+deadPort(t), cfg)
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	assert.Empty(t, stored(t, cfg.Store), "nothing to remember")
}

func TestDialGivenUp(t *testing.T) {
	reached := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(reached)
		<-r.Context().Done()
	}))
	defer server.Close()
	cfg := config(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	_, err := session.Dial(ctx, server.URL, cfg)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, stored(t, cfg.Store), "the caller's impatience says nothing of the peer")
}

func TestOtherHostAllowed(t *testing.T) {
	s := startServices(t, nil)
	_, port, err := net.SplitHostPort(s.stream.Addr().String())
	require.NoError(t, err)
	advertising := startServices(t, func(c *responder.Config) {
		c.Store, c.Addresses = s.store, map[string]string{"tcp": "localhost:" + port}
	})
	cfg := config(t)
	sess := dial(t, advertising.http.URL, cfg)
	assert.False(t, sess.Agreed().HHFR)
	assert.Zero(t, cfg.Transports["tcp"].(*loopback).dialled(), "not even tried")
	cfg = config(t)
	cfg.AllowHost = []string{"LOCALHOST"}
	sess = dial(t, advertising.http.URL, cfg)
	require.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
}

func TestBadConfig(t *testing.T) {
	good := config(t)
	for name, change := range map[string]func(*session.Config) string{
		"reconnect": func(c *session.Config) string { c.Reconnect = -1; return "http://x" },
		"shapes":    func(c *session.Config) string { c.Shapes = make([][32]byte, 1025); return "http://x" },
		"header":    func(c *session.Config) string { c.Headers = []string{"no XML"}; return "http://x" },
		"secret header": func(c *session.Config) string {
			c.Headers = []string{`<Security xmlns="` + xmlns.WSSE + `"/>`}
			return "http://x"
		},
		"representation": func(c *session.Config) string { c.Representations = []string{"owl"}; return "http://x" },
		"transport": func(c *session.Config) string {
			c.Transports = map[string]streamer.Transport{"owl": &loopback{}}
			return "http://x"
		},
		"scheme":  func(*session.Config) string { return "ftp://x" },
		"no host": func(*session.Config) string { return "http:///x" },
		"no URL":  func(*session.Config) string { return "http://[::1" },
	} {
		cfg := good
		_, err := session.Dial(t.Context(), change(&cfg), cfg)
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig}, name)
	}
	_, err := responder.New(responder.Config{})
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig})
}

// Names keep their case, bodies go with their length, and a target never leads to another host.
func TestPlainRequests(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	raw := make(chan string, 8)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			n, _ := c.Read(buf)
			raw <- string(buf[:n])
			_, _ = io.WriteString(c, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			_ = c.Close()
		}
	}()
	cfg := config(t)
	cfg.Transports = none
	sess := dial(t, "http://"+listener.Addr().String()+"/svc?q", cfg)
	assert.Equal(t, "no transport to offer", sess.Agreed().Why)
	body := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }
	posted, err := sess.Post(t.Context(), &streamer.Message{Body: body("one")})
	require.NoError(t, err)
	require.NoError(t, posted.Err())
	got := <-raw
	assert.Contains(t, got, "POST /svc?q HTTP/1.1\r\n")
	assert.Contains(t, got, "\r\nSOAPAction: \"\"\r\n")
	assert.Contains(t, got, "\r\nContent-Length: 3\r\n")
	require.NoError(t, sess.Send(t.Context(), &streamer.Message{
		Head: []byte(crlf("POST http://example.org/x HTTP/1.1\nsoapACTION: \"a\"\nHost: example.org\n\n")),
		Body: body(""),
	}))
	got = <-raw
	assert.Contains(t, got, "POST /x HTTP/1.1\r\nHost: 127.0.0.1")
	assert.Contains(t, got, "\r\nsoapACTION: \"a\"\r\n")
	assert.Contains(t, got, "\r\nContent-Length: 0\r\n")
	_, err = sess.Call(t.Context(), streamer.NewMessage([]byte("HTTP/1.1 200 OK\r\n\r\n"), nil))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})
	require.NoError(t, listener.Close())
	<-done
	err = sess.Send(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
}

func TestPlainRefusals(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	cfg := config(t)
	cfg.Transports = none
	_, err := dial(t, server.URL, cfg).Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
	refusing := httptest.NewServer(http.HandlerFunc(http.NotFound))
	defer refusing.Close()
	err = dial(t, refusing.URL, cfg).Send(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Refused})
}

// A body too long to be read ahead is streamed.
func TestPlainLongBody(t *testing.T) {
	long := bytes.Repeat([]byte(hex.EncodeToString([]byte("long"))), 1<<18)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		_, _ = w.Write(data)
	}))
	defer server.Close()
	cfg := config(t)
	cfg.Transports = none
	reply, err := dial(t, server.URL,
		cfg).Call(t.Context(), &streamer.Message{Body: io.MultiReader(bytes.NewReader(long))})
	require.NoError(t, err)
	data, err := reply.ReadAll(1 << 24)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(long, data))
}

// Logs and reasons name a peer without the query and user of its URL.
func TestLogsKeepSecrets(t *testing.T) {
	m := newMortal(t)
	var log syncBuffer
	cfg := config(t)
	cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.Clock = quick{newLater()}
	cfg.Reconnect = 30 * time.Second
	sess := dial(t, "http://me:hidden@"+m.http+"/x?key=hidden", cfg)
	broken := sess.Stream()
	m.kill()
	<-broken.Done()
	_, err := sess.Call(t.Context(), streamer.NewMessage(nil, nil))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	require.NoError(t, sess.Close())
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cfg.RememberFor = -1
	dial(t, strings.Replace(server.URL, "http://", "http://me:hidden@", 1)+"/x?key=hidden", cfg)
	said := log.String()
	assert.Contains(t, said, "plain SOAP from now on\" url=http://"+m.http+"/x ")
	assert.Contains(t, said, "plain SOAP\" url="+server.URL+"/x ")
	for _, s := range []string{said, sess.Agreed().Why, err.Error()} {
		assert.NotContains(t, s, "hidden")
	}
}

// syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
