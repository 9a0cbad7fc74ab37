package hhfr_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// countingListener counts the bytes of each connection.
type countingListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*countingConn
}

type countingConn struct {
	net.Conn
	mu  sync.Mutex
	in  bytes.Buffer
	out int64
}

func listenCounting(t *testing.T) *countingListener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return &countingListener{Listener: l}
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &countingConn{Conn: conn}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.Write(p[:n])
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out += int64(n)
	return n, err
}

// carried is what went over connections of HTTP and over those of streams.
func (l *countingListener) carried() (plain []byte, in, out int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.mu.Lock()
		if b := c.in.Bytes(); bytes.HasPrefix(b, []byte("POST ")) {
			plain = append(plain, b...)
		} else {
			in, out = in+int64(len(b)), out+c.out
		}
		c.mu.Unlock()
	}
	return plain, in, out
}

// exchange calls and sends some, with a field of its own in every third.
func exchange(t *testing.T, c *hhfr.Client) {
	t.Helper()
	for i := range 30 {
		body := strings.NewReader(envelope("1.1", fmt.Sprintf("<a>%d</a>", i)))
		req := &hhfr.Request{Action: "urn:x:get", Body: body}
		if i%3 == 0 {
			req.Header = http.Header{"X-Own": {fmt.Sprint(i)}}
		}
		if i%5 == 0 {
			require.NoError(t, c.Send(t.Context(), req))
			continue
		}
		reply, err := c.Call(t.Context(), req)
		require.NoError(t, err)
		_, err = reply.ReadAll()
		require.NoError(t, err)
	}
}

var ofConnection = regexp.MustCompile(
	`(?m)^(Host|Content-Length|User-Agent|Accept-Encoding|Connection|Upgrade|HHFR): .*\r\n`)

// What both ends count is what connections carry, byte for byte, and what plain SOAP takes, without
// the fields of one connection.
func TestCounters(t *testing.T) {
	listener := listenCounting(t)
	server := &hhfr.Server{Handler: echo, Store: newStore(t)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	cfg := config(t)
	cfg.Mode = negotiate.Explicit
	c := dial(t, "http://"+listener.Addr().String(), cfg)
	assert.Equal(t, hhfr.Counters{}.Requests, c.Counters().Requests)
	exchange(t, c)
	require.NoError(t, c.Close())
	require.NoError(t, server.Close())
	require.NoError(t, <-served)
	_, in, out := listener.carried()
	ours, theirs := c.Counters(), server.Counters()
	assert.Equal(t, []int64{30, 30, 0, 0}, []int64{ours.Requests, theirs.Requests, ours.InFlight, theirs.InFlight})
	assert.Equal(t, ours.Sent, theirs.Received)
	assert.Equal(t, ours.Received, theirs.Sent)
	assert.Equal(t, in, ours.Sent.Wire)
	assert.Equal(t, out, ours.Received.Wire)
	assert.Equal(t, []int64{30, 24}, []int64{ours.Sent.Messages, ours.Received.Messages})
	assert.Greater(t, ours.Sent.Saved(), ours.Sent.Bytes/2)

	plainly := listenCounting(t)
	old := &http.Server{Handler: knowsNothing(echo), ReadHeaderTimeout: time.Minute}
	go func() { served <- old.Serve(plainly) }()
	p := dial(t, "http://"+plainly.Addr().String(), config(t))
	exchange(t, p)
	require.NoError(t, p.Close())
	require.NoError(t, old.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	text, _, _ := plainly.carried()
	assert.Equal(t, int64(len(ofConnection.ReplaceAll(text, nil))), ours.Sent.Bytes)
	assert.Equal(t, hhfr.Counters{Requests: 30}, p.Counters())
}

// A request is in flight until its reply is read, and at the server until its service returns.
func TestCountersInFlight(t *testing.T) {
	for _, by := range []way{plain, stream} {
		began, finish := make(chan struct{}), make(chan struct{})
		services := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Wait") != "" {
				began <- struct{}{}
				<-finish
			}
			echo(w, r)
		})
		server := &hhfr.Server{Handler: services, Store: newStore(t)}
		url := "http://" + start(t, server)
		if by == plain {
			url = serve(t, plain, services)
		}
		c := dial(t, url, config(t))
		transport := &hhfr.Transport{Config: *config(t)}
		for range 3 {
			require.NoError(t, call(t, c))
			post(t, transport, url, envelope("1.1", "<a/>"))
		}
		waits := http.Header{"X-Wait": {"1"}}
		replies := make(chan io.ReadCloser, 2)
		go func() {
			r, err := c.Call(t.Context(), &hhfr.Request{Header: waits, Body: hhfr.Body(envelope("1.1", "<a/>"))})
			if assert.NoError(t, err) {
				replies <- r.Body
			}
		}()
		go func() {
			r, err := transport.RoundTrip(request(t, url, waits))
			if assert.NoError(t, err) {
				replies <- r.Body
			}
		}()
		<-began
		<-began
		assert.EqualValues(t, 1, c.Counters().InFlight, by)
		assert.EqualValues(t, 1, transport.Counters().InFlight, by)
		if by == stream {
			assert.EqualValues(t, 2, server.Counters().InFlight)
		}
		close(finish)
		for range 2 {
			body := <-replies
			_, err := io.Copy(io.Discard, body)
			require.NoError(t, err)
			require.NoError(t, body.Close())
		}
		_, err := c.Call(t.Context(), &hhfr.Request{Body: failingReader{}})
		require.Error(t, err)
		assert.Zero(t, c.Counters().InFlight, by)
		assert.Zero(t, transport.Counters().InFlight, by)
		assert.EqualValues(t, 4, transport.Counters().Requests, by)
		if by == stream {
			sent := transport.Counters().Sent
			assert.Positive(t, sent.Messages)
			assert.Less(t, sent.Messages, int64(4), "the first went plainly")
		}
		require.NoError(t, transport.Close())
	}
	assert.Zero(t, new(hhfr.Server).Counters())
	assert.Zero(t, new(hhfr.Handler).Counters())
	assert.Zero(t, new(hhfr.Client).Counters())
}

// Under a guarantee it is known how many messages are pending.
func TestCountersUnderGuarantee(t *testing.T) {
	began, finish := make(chan struct{}, 5), make(chan struct{})
	url := serve(t, stream, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-finish
		echo(w, r)
	}))
	cfg := config(t)
	cfg.Guarantee = hhfr.AtLeastOnce
	c := dial(t, url, cfg)
	for range 5 {
		require.NoError(t, c.Send(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")}))
	}
	<-began
	counters := c.Counters()
	assert.EqualValues(t, 5, counters.Accepted)
	assert.Zero(t, counters.Acknowledged)
	assert.Zero(t, counters.InFlight)
	close(finish)
	require.NoError(t, c.Close())
	assert.EqualValues(t, 5, c.Counters().Acknowledged)
}
