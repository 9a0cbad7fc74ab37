package hhfr_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// slowly has requests wait for the path's time before they are answered.
var slowly = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		echo(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(d):
	case <-r.Context().Done(): // nobody waits for it any more
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
})

// inMemory serves at a network of its own, and has a client of it.
func inMemory(t *testing.T, server *hhfr.Server) (client *http.Client, served chan error) {
	t.Helper()
	network := &inproc.Transport{}
	l, err := network.Listen(t.Context(), "server")
	require.NoError(t, err)
	served = make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	base := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return network.Dial(ctx, "server")
	}}
	return &http.Client{Transport: &hhfr.Transport{Base: base, Config: hhfr.Config{Store: newStore(t)}}}, served
}

// Shutdown waits for requests that take an hour, on a stream and in plain SOAP, unless its context
// is done before: then they go on, as with net/http, until Close ends them within its 5 seconds.
func TestShutdownWaits(t *testing.T) {
	for name, patient := range map[string]bool{"as long as it takes": true, "until its context is done": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &hhfr.Server{Handler: slowly, Store: newStore(t)}
				client, served := inMemory(t, server)
				for range 3 { // until there is a stream
					ask(t, client, "http://server/", http.Header{})
				}
				results := make(chan error, 2)
				for _, header := range []http.Header{{}, {"X-Long": {strings.Repeat("x", 70_000)}}} {
					req := request(t, "http://server/1h", header)
					go func() {
						resp, err := client.Do(req)
						if err == nil {
							_, err = io.ReadAll(resp.Body)
							_ = resp.Body.Close()
						}
						results <- err
					}()
				}
				synctest.Wait()
				began := time.Now()
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTooLong)
				defer cancel()
				if patient {
					ctx = t.Context()
				}
				err := server.Shutdown(ctx)
				if patient {
					require.NoError(t, err)
					require.NoError(t, <-results)
					require.NoError(t, <-results)
					assert.InDelta(t, time.Hour, time.Since(began), float64(time.Second), "net/http looks now and then")
				} else {
					require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Unfinished})
					require.ErrorIs(t, err, errTooLong)
					require.EqualError(t, err, "hhfr: requests in progress: too long")
					assert.Equal(t, time.Minute, time.Since(began))
					synctest.Wait()
					assert.Empty(t, results, "they go on")
					require.NoError(t, server.Close())
					assert.Equal(t, time.Minute+5*time.Second, time.Since(began))
					for range 2 {
						require.ErrorIs(t, <-results, &hhfr.Error{Code: hhfr.FateUnknown})
					}
				}
				require.NoError(t, <-served)
				require.NoError(t, server.Shutdown(t.Context()), "again")
				require.NoError(t, client.Transport.(*hhfr.Transport).Close())
			})
		})
	}
}

var errTooLong = errors.New("too long")

// A peer that says nothing, and will never close, does not hold a Shutdown up.
func TestShutdownOfSilentPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &hhfr.Server{Handler: slowly, Store: newStore(t)}
		network := &inproc.Transport{}
		l, err := network.Listen(t.Context(), "server")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		conn, err := network.Dial(t.Context(), "server")
		require.NoError(t, err)
		_, err = io.WriteString(conn, "OPTIONS /echo HTTP/1.1\r\nHost: server\r\nHHFR: 1\r\n"+
			"Connection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n")
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 20))
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, server.Shutdown(t.Context()))
		assert.LessOrEqual(t, time.Since(began), 10*time.Second)
		require.NoError(t, <-served)
		require.NoError(t, conn.Close())
	})
}

// Under load, each request that a service began has its whole reply, and no further one begins:
// over TCP, TLS, UDP, and in plain SOAP.
func TestShutdownUnderLoad(t *testing.T) {
	for _, by := range []string{"plain", "tcp", "tls", "udp", "upgrade"} {
		t.Run(by, func(t *testing.T) {
			var began, answered atomic.Int64
			busy := make(chan struct{}, 1)
			server := &hhfr.Server{Store: newStore(t), Handler: http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if began.Add(1) == 100 {
						busy <- struct{}{}
					}
					time.Sleep(time.Millisecond) // so that there are always some in progress
					echo(w, r)
				})}
			scheme := "http"
			if by == "tls" {
				scheme, server.TLS = "https",
					&tls.Config{Certificates: []tls.Certificate{authority(t).Issue(time.Hour, "127.0.0.1")}}
			}
			addr := start(t, server)
			cfg := session.Config{Store: newStore(t), RequireHHFR: by != "plain"}
			switch by {
			case "plain":
				cfg.Transports = map[string]streamer.Transport{}
			case "udp":
				cfg.Transports = map[string]streamer.Transport{"udp": udp.Transport{}}
			case "upgrade":
				cfg.Mode = "first-call"
			case "tls":
				cfg.HTTPClient = &http.Client{Transport: &http.Transport{TLSClientConfig: config(t).TLS}}
			}
			var callers sync.WaitGroup
			for c := range 8 {
				s, err := session.Dial(t.Context(), scheme+"://"+addr, cfg)
				require.NoError(t, err)
				defer func() { _ = s.Close() }()
				for n := range 4 {
					callers.Go(func() {
						for i := 0; ; i++ {
							body := fmt.Sprintf("<a>%d-%d-%d</a>", c, n, i)
							reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(body)))
							if err != nil {
								return
							}
							if got, err := reply.ReadAll(1 << 20); err != nil || string(got) != body {
								return
							}
							answered.Add(1)
						}
					})
				}
			}
			<-busy
			require.NoError(t, server.Shutdown(t.Context()))
			assert.GreaterOrEqual(t, began.Load(), int64(100))
			callers.Wait()
			assert.Equal(t, began.Load(), answered.Load())
			_, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
			require.Error(t, err, "nobody listens")
		})
	}
}

// A Handler in a server of net/http has a Shutdown of its own, for its streams.
func TestShutdownOfHandler(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	handler := &hhfr.Handler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("SOAPAction") == `"wait"` {
			close(entered)
			<-finish
		}
		echo(w, r)
	}), Store: newStore(t)}
	c := dial(t, serve(t, plain, handler), nil)
	for range 2 {
		require.NoError(t, call(t, c))
	}
	replied := make(chan error, 1)
	go func() {
		r, err := c.Call(t.Context(), &hhfr.Request{Action: "wait", Body: hhfr.Body("<a/>")})
		if err == nil {
			assert.Equal(t, stream.seen(), r.Header.Get("X-Way"))
			_, err = r.ReadAll()
		}
		replied <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, handler.Shutdown(ctx), &hhfr.Error{Code: hhfr.Unfinished})
	close(finish)
	require.NoError(t, handler.Shutdown(t.Context()))
	require.NoError(t, <-replied)
	require.NoError(t, handler.Close())
}
