package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// cutting dials connections of which one, by its number from 1, breaks after so many bytes in one
// direction.
type cutting struct {
	number   int
	up, down int // bytes that pass; below 0: all

	mu     sync.Mutex
	dialed int
	cut    *cutConn
}

func (c *cutting) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	return c.Dial(ctx, addr)
}

func (c *cutting) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return tcp.Transport{}.Listen(ctx, addr)
}

func (c *cutting) Dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := tcp.Transport{}.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialed++; c.dialed != c.number {
		return conn, nil
	}
	c.cut = &cutConn{Conn: conn, up: c.up, down: c.down}
	return c.cut, nil
}

// isOver reports whether the connection has been cut.
func (c *cutting) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil {
		return false
	}
	c.cut.mu.Lock()
	defer c.cut.mu.Unlock()
	return c.cut.up == 0 || c.cut.down == 0
}

type cutConn struct {
	net.Conn
	mu       sync.Mutex
	up, down int
}

var errCut = errors.New("cut")

// pass takes from a budget; cut: it is over with that.
func (c *cutConn) pass(budget *int, n int) (passed int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *budget < 0 {
		return n, false
	}
	passed = min(n, *budget)
	*budget -= passed
	return passed, passed < n || *budget == 0
}

func (c *cutConn) Write(p []byte) (int, error) {
	n, cut := c.pass(&c.up, len(p))
	if !cut {
		return c.Conn.Write(p)
	}
	n, _ = c.Conn.Write(p[:n])
	_ = c.Close()
	return n, errCut
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	n, cut := c.pass(&c.down, n)
	if cut {
		_ = c.Close()
		if n == 0 {
			return 0, errCut
		}
	}
	return n, err
}

// A connection that breaks anywhere, in a first call, in a session that is met again, in TLS or
// not, leaves both ends able to continue. No message is processed twice. Each call has its own
// reply, or an error that reports whether it may have been processed. Calls after it succeed, and
// so does another session with the same stores.
func TestEntryIsCutAnywhere(t *testing.T) {
	const most = 4000 // more than there are bytes in a direction, but for handshakes
	step := entrySteps
	for _, secure := range []bool{false, true} {
		for _, met := range []bool{false, true} {
			for _, up := range []bool{false, true} {
				t.Run(fmt.Sprint("secure ", secure, ", met ", met, ", up ", up), func(t *testing.T) {
					w := newCutWorld(t, secure)
					for at := 0; at < most; at += step {
						w.try(t, met, up, at)
					}
				})
			}
		}
	}
}

// cutWorld is a server that counts what it processed.
type cutWorld struct {
	d    *door
	mu   sync.Mutex
	seen map[string]int
	next int
}

func newCutWorld(t *testing.T, secure bool) *cutWorld {
	w := &cutWorld{seen: map[string]int{}}
	w.d = open(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it broke off: nothing was processed
		}
		w.mu.Lock()
		w.seen[string(body)]++
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = rw.Write(body)
	}), secure, nil)
	return w
}

func (w *cutWorld) try(t *testing.T, met, up bool, at int) {
	t.Helper()
	store := memory.New(memory.Config{})
	sess := func(c *cutting, reconnects bool) *session.Session {
		base := w.d.client.Clone()
		base.DialContext = c.DialContext
		t.Cleanup(base.CloseIdleConnections)
		cfg := session.Config{Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: base}, Store: store}
		if reconnects {
			cfg.Reconnect = eventually
		}
		if base.TLSClientConfig == nil {
			cfg.Transports = map[string]streamer.Transport{"tcp": c}
		}
		return dial(t, w.d.url, cfg)
	}
	if met {
		s := sess(&cutting{}, false)
		w.call(t, s, true)
		require.NoError(t, s.Close())
	}
	c := &cutting{number: 1, up: -1, down: -1}
	if up {
		c.up = at
	} else {
		c.down = at
	}
	s := sess(c, at%2 == 0)
	for range 4 {
		w.call(t, s, c.isOver())
	}
	_ = s.Close()
	s = sess(&cutting{}, false)
	w.call(t, s, true)
	require.NoError(t, s.Close())
}

// call sends one message, which must succeed if it is sure, and have one fate in any case.
func (w *cutWorld) call(t *testing.T, s *session.Session, sure bool) {
	t.Helper()
	w.next++
	text := fmt.Sprint("<call>", w.next, "</call>")
	m, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(text)))
	var got []byte
	if err == nil {
		got, err = m.ReadAll(1 << 20)
	}
	w.mu.Lock()
	processed := w.seen[text]
	w.mu.Unlock()
	switch {
	case err == nil:
		assert.Equal(t, text, string(got))
		assert.Equal(t, 1, processed, text)
	case sure:
		require.NoError(t, err)
	case errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable}),
		errors.Is(err, &negotiate.Error{Code: negotiate.Unsent}):
		assert.Zero(t, processed, "%s: %v", text, err)
	default:
		var own *negotiate.Error
		var stream *streamer.Error
		require.True(t, errors.As(err, &own) && own.Code == negotiate.FateUnknown || errors.As(err, &stream), "%s: %v",
			text, err)
		assert.LessOrEqual(t, processed, 1, text)
	}
}
