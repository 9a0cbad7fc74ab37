package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// middlebox answers requests with Upgrade as it is told, and others with their body. It records
// what it got.
type middlebox struct {
	url    string
	answer string // to a request with Upgrade; empty: it closes

	mu  sync.Mutex
	got []string // method, whether it asked, and the body
}

func newMiddlebox(t testing.TB, answer string) *middlebox {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &middlebox{url: "http://" + l.Addr().String() + "/soap", answer: answer}
	var wait sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wait.Wait()
	})
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { m.serve(conn) })
		}
	})
	return m
}

func (m *middlebox) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		asks := req.Header.Get("Upgrade") != ""
		m.mu.Lock()
		m.got = append(m.got, fmt.Sprintf("%s %t %s", req.Method, asks, body))
		m.mu.Unlock()
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(body), body)
		if asks {
			answer = m.answer
		}
		if _, err := io.WriteString(conn, answer); err != nil || answer == "" ||
			strings.Contains(answer, "Connection: close") {
			return
		}
	}
}

func (m *middlebox) seen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.got...)
}

func status(line string) string {
	return "HTTP/1.1 " + line + "\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nsays"
}

// A server that answers a request with Upgrade by a refusal, or not at all, is remembered and not
// asked again. The call is repeated only where the answer says that nothing else was wrong with it.
func TestServersThatRefuseUpgrade(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		first  string // the reply of the first call; empty: its fate is unknown
		seen   []string
	}{
		"400": {status("400 Bad Request"), "400 says", []string{"POST true one", "POST false two"}},
		"501": {status("501 Not Implemented"), "501 says", []string{"POST true one", "POST false two"}},
		"426": {status("426 Upgrade Required"), "200 one",
			[]string{"POST true one", "POST false one", "POST false two"}},
		"closes":  {"", "", []string{"POST true one", "POST false two"}},
		"ignores": {status("200 OK"), "200 says", []string{"POST true one", "POST false two"}},
		"h2c": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "",
			[]string{"POST true one", "POST false two"}},
		"no hello": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
			"hhfr/1\r\n\r\nConnection: close", "", []string{"POST true one", "POST false two"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMiddlebox(t, tc.answer)
			cfg := session.Config{
				Mode:       negotiate.Auto,
				HTTPClient: &http.Client{Transport: &http.Transport{}},
				Store:      memory.New(memory.Config{}),
			}
			for round := range 2 { // the second session remembers
				s := dial(t, m.url, cfg)
				for i, text := range []string{"one", "two"} {
					reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(text)))
					if i == 0 && round == 0 && tc.first == "" {
						require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
						continue
					}
					require.NoError(t, err)
					body, err := reply.ReadAll(100)
					require.NoError(t, err)
					want := "200 " + text
					if i == 0 && round == 0 {
						want = tc.first
					}
					assert.Equal(t, want, string(reply.Head[9:12])+" "+string(body))
				}
				agreed := s.Agreed()
				assert.False(t, agreed.HHFR)
				assert.NotEmpty(t, agreed.Why)
				assert.Equal(t, round == 1, agreed.Remembered, agreed.Why)
				require.NoError(t, s.Close())
			}
			assert.Equal(t, append(tc.seen, "POST false one", "POST false two"), m.seen())
		})
	}
}

// Answers of gateways whose server is away prove nothing about the server.
func TestGatewaysThatAreBusyAreAskedAgain(t *testing.T) {
	m := newMiddlebox(t, status("503 Service Unavailable"))
	s := dial(t, m.url, session.Config{Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: &http.Transport{}}})
	for range 2 {
		_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"POST true x", "POST true x"}, m.seen())
	require.NoError(t, s.Close())
}

// RequireHHFR asks before the first call, and sends nothing to a server that refuses.
func TestRequireHHFRAsksBeforeTheFirstCall(t *testing.T) {
	m := newMiddlebox(t, status("501 Not Implemented"))
	cfg := session.Config{
		Mode:        negotiate.Auto,
		RequireHHFR: true,
		HTTPClient:  &http.Client{Transport: &http.Transport{}},
	}
	_, err := session.Dial(t.Context(), m.url, cfg)
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.NoHHFR})
	assert.Equal(t, []string{"OPTIONS true "}, m.seen())

	for _, secure := range []bool{false, true} {
		d := open(t, http.HandlerFunc(repeat), secure, nil)
		cfg := d.config(negotiate.FirstCall)
		cfg.RequireHHFR = true
		s := dial(t, d.url, cfg)
		assert.True(t, s.Agreed().HHFR)
		say(t, s, "first")
		say(t, s, "second")
		assert.Equal(t, int64(1), d.conns.Load())
		require.NoError(t, s.Close())
	}
}

// No server is there: nothing was sent, and the next call asks.
func TestNobodyThereAtTheFirstCall(t *testing.T) {
	cfg := session.Config{Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: &http.Transport{}}}
	s := dial(t, "http://"+shared.Addr(t), cfg)
	for range 2 {
		_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
		require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	}
	assert.Equal(t, "no call has asked for a stream yet", s.Agreed().Why)
	require.NoError(t, s.Close())
}

// A service that replies before it has read its request answers in plain HTTP, and the next call
// asks.
func TestEarlyRepliesArePlain(t *testing.T) {
	early := make(chan bool, 1)
	early <- true
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-early:
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(io.Discard, r.Body)
		default:
			repeat(w, r)
		}
	}), false, nil)
	s := dial(t, d.url, d.config(negotiate.Auto))
	long := strings.Repeat("x", 100<<10)
	reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(long)))
	require.NoError(t, err)
	assert.Contains(t, string(reply.Head), " 202 ")
	_, err = reply.ReadAll(1 << 20)
	require.NoError(t, err)
	assert.False(t, s.Agreed().HHFR)
	m, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(long)))
	require.NoError(t, err)
	got, err := m.ReadAll(1 << 20)
	require.NoError(t, err)
	assert.Len(t, got, len(long))
	assert.True(t, s.Agreed().HHFR)
	require.NoError(t, s.Close())
}

// A service that panics ends the first reply there, and not the stream; the output of one that
// flushes arrives at once; 100 Continue comes before 101.
func TestServicesOfTheFirstCall(t *testing.T) {
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if string(body) == "panic" {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "flushed")
		assert.NoError(t, http.NewResponseController(w).Flush())
		<-r.Context().Done() // the client has received it, and stops waiting
	}), false, nil)
	s := dial(t, d.url, d.config(negotiate.Auto))
	_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("panic")))
	require.Error(t, err)
	assert.True(t, s.Agreed().HHFR)
	require.NoError(t, s.Close())
	cfg := d.config(negotiate.FirstCall)
	s = dial(t, d.url, cfg)
	m, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.NoError(t, err)
	heard := make([]byte, 7)
	_, err = io.ReadFull(m.Body, heard)
	require.NoError(t, err)
	assert.Equal(t, "flushed", string(heard))
	require.NoError(t, m.Body.(io.Closer).Close())
	require.NoError(t, s.Close())

	d = open(t, http.HandlerFunc(repeat), false, nil)
	cfg = d.config(negotiate.FirstCall)
	d.client.ExpectContinueTimeout = 10 * time.Second
	s = dial(t, d.url, cfg)
	head := "POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nExpect: 100-continue\r\n\r\n"
	m, err = s.Call(t.Context(), streamer.NewMessage([]byte(head), []byte("<e/>")))
	require.NoError(t, err)
	got, err := m.ReadAll(100)
	require.NoError(t, err)
	assert.Equal(t, "<e/>", string(got))
	assert.True(t, s.Agreed().HHFR)
	require.NoError(t, s.Close())
}

// Calls that begin before the first one has its 101 go as plain SOAP, and wait for nothing.
func TestCallsBesideTheFirstOneWaitForNothing(t *testing.T) {
	release := make(chan struct{})
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			<-release // before it reads: no 101 until then
		}
		repeat(w, r)
	}), false, nil)
	s := dial(t, d.url, d.config(negotiate.Auto))
	slow := make(chan error, 1)
	go func() {
		head := "POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nX-Slow: 1\r\n\r\n"
		m, err := s.Call(t.Context(),
			&streamer.Message{Head: []byte(head), Body: io.MultiReader(strings.NewReader(strings.Repeat("x", 2<<20)))})
		if err == nil {
			_, err = m.ReadAll(3 << 20)
		}
		slow <- err
	}()
	require.Eventually(t, func() bool { return d.conns.Load() == 1 }, 5*time.Second, time.Millisecond)
	say(t, s, "beside")
	assert.False(t, s.Agreed().HHFR)
	close(release)
	require.NoError(t, <-slow)
	assert.True(t, s.Agreed().HHFR)
	require.NoError(t, s.Close())
}

// The RoundTripper of an unchanged client of net/http.
func TestRoundTripperByTheFirstCall(t *testing.T) {
	for _, secure := range []bool{false, true} {
		d := open(t, http.HandlerFunc(repeat), secure, nil)
		rt, err := session.NewRoundTripper(d.client, session.Config{Mode: negotiate.Auto})
		require.NoError(t, err)
		client := &http.Client{Transport: rt}
		for i := range 5 {
			_, body := post(t, client, d.url, "text/xml; charset=utf-8",
				strings.NewReader(fmt.Sprint("<e>", i, "</e>")))
			assert.Equal(t, fmt.Sprint("<e>", i, "</e>"), body)
		}
		assert.Equal(t, int64(1), d.conns.Load())
		s, ok := rt.Session(strings.TrimSuffix(d.url, "/soap"))
		require.True(t, ok)
		assert.True(t, s.Agreed().HHFR)
		require.NoError(t, errors.Join(rt.Close()))
	}
}

// A server that ignores the fields keeps its connection for the calls that follow.
func TestPlainServersKeepTheirConnection(t *testing.T) {
	m := newMiddlebox(t, status("200 OK"))
	var conns int
	base := &http.Transport{}
	rt, err := session.NewRoundTripper(base, session.Config{Mode: negotiate.Auto})
	require.NoError(t, err)
	client := &http.Client{Transport: rt}
	for range 5 {
		_, _ = post(t, client, m.url, "text/xml", strings.NewReader("<e/>"))
		conns++
	}
	assert.Len(t, m.seen(), conns)
	require.NoError(t, rt.Close())
}

// Deadlines that a service sets for its request do not end the stream that the connection has
// become. A service may set fields while its request is read elsewhere, as httputil.ReverseProxy
// does.
func TestServicesThatSetDeadlinesAndFields(t *testing.T) {
	d := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		within := time.Millisecond
		if r.ContentLength < 0 { // it is not read yet
			within = time.Minute
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within))
		read := make(chan []byte)
		go func() {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			read <- body
		}()
		for i := range 100 {
			w.Header().Set(fmt.Sprint("X-", i), "x")
		}
		body := <-read
		time.Sleep(5 * time.Millisecond) // the deadlines are over
		_, _ = w.Write(body)
	}), false, nil)
	for _, long := range []bool{false, true} {
		s := dial(t, d.url, d.config(negotiate.FirstCall))
		for i := range 3 {
			body := io.Reader(strings.NewReader("<e/>"))
			if long && i == 0 {
				body = io.MultiReader(strings.NewReader(strings.Repeat("x", 2<<20))) // of no known length
			}
			m, err := s.Call(t.Context(), &streamer.Message{Body: body})
			require.NoError(t, err)
			_, err = m.ReadAll(3 << 20)
			require.NoError(t, err)
			assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
		}
		require.NoError(t, s.Close())
	}
}

// Where first contacts are refused, because they have no field that admits, a call still succeeds,
// also one whose body can be read once.
func TestRefusedFirstContactsCostNoCall(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), true,
		func(c *responder.Config) { c.Admit = responder.AdmitBearer([]string{"secret"}) })
	for _, once := range []bool{false, true} {
		s := dial(t, d.url, d.config(negotiate.FirstCall))
		head := "POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nAuthorization: Bearer secret\r\n\r\n"
		text := strings.Repeat("x", 2<<20)
		for range 2 {
			body := io.Reader(strings.NewReader(text))
			if once {
				body = io.MultiReader(body)
			}
			m, err := s.Call(t.Context(), &streamer.Message{Head: []byte(head), Body: body})
			require.NoError(t, err)
			got, err := m.ReadAll(3 << 20)
			require.NoError(t, err)
			assert.Len(t, got, len(text))
		}
		assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
		require.NoError(t, s.Close())
	}
}

// The answer to a request that no stream is for does not ask it to try again.
func TestAnswersToWhoIsNotAdmittedSayNothingOfStreams(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false,
		func(c *responder.Config) { c.Admit = responder.AdmitBearer([]string{"secret"}) })
	for _, upgrade := range []bool{false, true} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url, strings.NewReader("<e/>"))
		require.NoError(t, err)
		req.Header.Set(negotiate.Field, "1")
		if upgrade {
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", negotiate.Protocol)
		}
		resp, err := (&http.Client{Transport: d.client}).Do(req)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, "<e/>", string(got))
		assert.Empty(t, resp.Header.Values(negotiate.Field), "upgrade %v", upgrade)
	}
}
